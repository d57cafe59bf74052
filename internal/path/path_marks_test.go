package path_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/path"
)

// TestMarks_Limit sends marks while there is room.
func TestMarks_Limit(t *testing.T) {
	var m path.Model
	var sent uint64
	for m.Room() && sent < 1000 {
		sent++
		m.Departs(time.Duration(sent), sent<<10, false)
	}
	require.False(t, m.Room())
	require.Greater(t, sent, uint64(4))
	require.Less(t, sent, uint64(1000))
	require.True(t, m.Returns(time.Second, 1<<10), "the first one is remembered")
	require.True(t, m.Room())
	require.True(t, m.InFlight())
	require.True(t, m.Returns(time.Second, sent<<10))
	require.False(t, m.InFlight())
}
