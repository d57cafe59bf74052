package natswire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// beat does not judge a peer right after a suspension of this process.
func TestBeat_ProcessStood(t *testing.T) {
	c := &conn{link: &link{beat: time.Second}, beaten: time.Now()}
	for range silence - 1 {
		require.True(t, c.alive())
	}
	c.beaten = c.beaten.Add(-time.Minute)
	require.True(t, c.alive(), "what has come meanwhile is read first")
	c.beaten = time.Now()
	require.False(t, c.alive(), "and nothing has come")
}
