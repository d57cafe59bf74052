package message

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/race"
)

var meta = Meta{TTL: 1000, Loss: 1, Skipped: 2, Trace: make([]byte, 55), Key: make([]byte, 16), Metadata: make([]byte, 80), Stream: true, Window: 1 << 16, Initial: 1 << 15}

// Messages are written and read without an allocation.
func TestMessages_Allocs(t *testing.T) {
	var (
		buf     = make([]byte, 0, 1024)
		open    = Open{Pipe: 1 << 20, Function: 300, Priority: -3, Params: make([]byte, 64), Meta: meta}
		block   = Block{Pipe: 1 << 20, Payload: make([]byte, 64), Meta: meta}
		result  = Close{Pipe: 1 << 20, Result: make([]byte, 64)}
		abort   = Close{Pipe: 1 << 20, Abort: codec.ErrExpired.Withf("too late")}
		frames  = [][]byte{open.AppendTo(nil), block.AppendTo(nil), result.AppendTo(nil)}
		unknown = withUnknownMeta(&open)
	)
	for name, f := range map[string]func(){
		"write Open":   func() { buf = open.AppendTo(buf[:0]) },
		"write Block":  func() { buf = block.AppendTo(buf[:0]) },
		"write Close":  func() { buf = result.AppendTo(buf[:0]) },
		"write Abort":  func() { buf = abort.AppendTo(buf[:0]) },
		"write Ping":   func() { buf = Ping{N: 1 << 40}.AppendTo(buf[:0]) },
		"write Credit": func() { buf = Credit{Pipe: 4, Limit: 1 << 40}.AppendTo(buf[:0]) },
		"write Skip":   func() { buf = Skip{Pipe: 4, Sent: 1 << 40}.AppendTo(buf[:0]) },
		"read Open":    func() { _, _ = ParseOpen(frames[0]) },
		"read unknown": func() { _, _ = ParseOpen(unknown) },
		"read Block":   func() { _, _ = ParseBlock(frames[1]) },
		"read Close":   func() { _, _ = ParseClose(frames[2]) },
		"read a type":  func() { _, _ = TypeOf(frames[0]) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

// Metadata is written and checked without an allocation, however many entries it has.
func TestMetadata_Allocs(t *testing.T) {
	m := atTheBound()
	buf, err := AppendMetadata(nil, m)
	require.NoError(t, err)
	data := append([]byte{}, buf...)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = AppendMetadata(buf[:0], m) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { err = CheckMetadata(data) }))
	require.NoError(t, err)
	if !race.Enabled { // which takes more to grow a slice
		require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { _, _ = AppendMetadata(nil, m) }), "one for all of it")
	}
}
