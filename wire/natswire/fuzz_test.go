package natswire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzMessage_RoundTrip(f *testing.F) {
	f.Add(messageHeader{kind: kindData, number: 7, taken: 9}.appendTo(nil))
	f.Add(append(messageHeader{kind: kindWelcome}.appendTo(nil), helloMessage{tls: true, window: window}.appendTo(nil)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := parseHeader(b)
		if err != nil {
			require.ErrorIs(t, err, ErrForeign)
			return
		}
		require.Equal(t, b, append(h.appendTo(nil), body...))
		g, err := parseGreeting(body)
		if err != nil {
			require.ErrorIs(t, err, ErrForeign)
			return
		}
		again, err := parseGreeting(g.appendTo(nil))
		require.NoError(t, err)
		require.Equal(t, g, again)
	})
}

func FuzzInbox_OnlyWithSecret(f *testing.F) {
	f.Add("_INBOX.ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	f.Add("orders.created")
	f.Fuzz(func(t *testing.T, subject string) {
		if checkInbox(subject) != nil {
			return
		}
		require.Greater(t, len(subject), secretSize)
		require.False(t, bytes.ContainsAny([]byte(subject), "*> \r\n\t"))
	})
}
