//go:build !js

package wswire_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

// requireNoSecret requires that no way to print an error shows the secret.
func requireNoSecret(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v %+v %q", e, e, e)
		for _, secret := range []string{"s3cret", "s3c", "t0ken", base64.StdEncoding.EncodeToString([]byte("me:s3cret"))} {
			require.NotContains(t, text, secret)
		}
	}
}

// No secret of a URL is in an error.
func TestSecrets_OfURL(t *testing.T) {
	servers := map[string]http.HandlerFunc{
		"answers 401 and says what it was sent": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintln(w, "not you:", r.Header.Get("Authorization"), r.URL, r.URL.Query())
		},
		"says where to go": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login?from=elsewhere&t="+r.URL.Query().Get("t"), http.StatusFound)
		},
		"is cut": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, answer := range servers {
		t.Run("the server "+name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			defer s.Close()
			s.Config.SetKeepAlivesEnabled(false)
			raw := "ws://me:s3cret@" + strings.TrimPrefix(s.URL, "http://") + "/rpc?t=t0ken"
			_, err := wswire.Dial(t.Context(), raw)
			requireNoSecret(t, err)
			require.ErrorContains(t, err, "/rpc?…: ")
			_, err = wire.Dial(t.Context(), raw, wire.Options{})
			requireNoSecret(t, err)
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	host := strings.TrimPrefix(gone.URL, "http://")
	for _, raw := range []string{
		"ws://me:s3cret@" + host + "/rpc?t=t0ken", "wss://t0ken@" + host, "ws://" + host + "?t0ken", "ws://" + host + "#t0ken", "ws:me:s3cret@" + host, "ws://me:s3cret@/",
		"ws://me:s3c#ret@" + host, "ws://me:s3%zzcret@" + host, "ws://me:s3cret@host:port/", "http://me:s3cret@" + host + "?t0ken", "me:s3cret@" + host, "ws://no host/?t=t0ken",
	} {
		t.Run(raw, func(t *testing.T) {
			_, err := wswire.Dial(t.Context(), raw)
			requireNoSecret(t, err)
			_, err = wire.Dial(t.Context(), raw, wire.Options{})
			requireNoSecret(t, err)
			if !strings.HasPrefix(raw, "wss") {
				_, err = wire.Listen(t.Context(), raw, wire.Options{})
				requireNoSecret(t, err)
			}
		})
	}
	_, err := wswire.Dial(t.Context(), "ws://me:s3cret@"+host)
	require.NotErrorIs(t, err, io.EOF)
	require.NotErrorIs(t, err, wire.ErrURL, "it may succeed later")
}

// The URL of a listener has no secrets.
func TestListener_URLSecrets(t *testing.T) {
	l := listen(t, "ws://127.0.0.1:0/rpc", wire.Options{})
	require.Equal(t, transport.ShowURL(l.URL()), l.URL())
}
