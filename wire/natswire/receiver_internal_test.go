package natswire

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// A receiver holds no more than the window, and reports a peer that exceeds it.
func TestReceiver_BeyondWindow(t *testing.T) {
	for name, size := range map[string]int{"large messages": largest - headerSize, "empty messages": 0} {
		t.Run(name, func(t *testing.T) {
			r, body := new(connReceiver), make([]byte, size)
			r.changed.L = &r.mu
			most := int(window / cost(size))
			for range most {
				require.NoError(t, r.put(body))
			}
			for range 10 {
				err := r.put(body)
				require.ErrorIs(t, err, ErrForeign)
				require.ErrorContains(t, err, "window")
			}
			require.Len(t, r.queue, most)
		})
	}
}

// Each inbox is another one, below the prefix of the connection.
func TestInbox_Unguessable(t *testing.T) {
	for prefix, want := range map[string]string{"": "_INBOX.", "mine.inbox": "mine.inbox."} {
		nc := &nats.Conn{Opts: nats.Options{InboxPrefix: prefix}}
		a, b := newInbox(nc), newInbox(nc)
		require.Len(t, a, len(want)+secretSize)
		require.Contains(t, a, want)
		require.NotEqual(t, a, b)
		require.NoError(t, checkInbox(a))
	}
}
