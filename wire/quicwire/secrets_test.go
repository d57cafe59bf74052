package quicwire

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// No secret of a URL is in an error.
func TestSecrets_OfURL(t *testing.T) {
	// Dial does not parse a URL.
	dial := func(raw string) error { _, err := Dial(t.Context(), raw, nil); return err }
	url := func(raw string) error { _, err := wire.Dial(t.Context(), raw, wire.Options{}); return err }
	listen := func(raw string) error { _, err := wire.Listen(t.Context(), raw, wire.Options{}); return err }
	for _, raw := range []string{"quic://me:s3cret@127.0.0.1:1/?t=t0ken", "quic://127.0.0.1:1?t0ken", "quic:me:s3cret@127.0.0.1:1", "quic://me:s3c#ret@127.0.0.1:1"} {
		for _, f := range []func(string) error{dial, url, listen} {
			for err := f(raw); ; err = errors.Unwrap(err) {
				require.Error(t, err)
				require.NotContains(t, err.Error(), "s3c")
				require.NotContains(t, err.Error(), "t0ken")
				if errors.Unwrap(err) == nil {
					break
				}
			}
		}
	}
}
