package classic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/race"
)

// The path between a session and its wire allocates nothing itself: only a decoded message and a
// decoded value take memory.
func TestMessages_Allocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		type call struct {
			Name string
			ID   classic.UUID
			Many []int64
			Some []byte
			Size float32
		}
		v := &call{"Ada", classic.UUID{1, 15: 200}, []int64{1, -70_000}, []byte("bytes"), 0.5}
		params, err := form.Append(nil, v)
		require.NoError(t, err)
		result, err := form.Append(nil, v.Many)
		require.NoError(t, err)
		count, split, err := form.SplitParams(params)
		require.NoError(t, err)
		open := classic.Open{Pipe: 0x8001, Function: 300, Count: count, Params: split}
		room, data := make([]byte, 0, 1000), make([]byte, 500)
		whole, err := open.AppendTo(nil, form)
		require.NoError(t, err)
		d, half := classic.Decoder{Codec: form}, whole[:len(whole)-1]
		for name, f := range map[string]func() error{
			"SplitParams": func() error { _, _, err := form.SplitParams(params); return err },
			"JoinParams":  func() error { form.JoinParams(room, &open); return nil },
			"ResultOf":    func() error { _, err := form.ResultOf(result); return err },
			"Open":        func() error { _, err := open.AppendTo(room, form); return err },
			"Block":       func() error { _, err := (&classic.Block{Pipe: 1, Payload: data}).AppendTo(room, form); return err },
			"Close":       func() error { _, err := (&classic.Close{Pipe: 1, Result: result}).AppendTo(room, form); return err },
			"half an Open": func() error {
				if _, _, err := d.Next(half, classic.MaxMessage); err != classic.ErrIncomplete {
					return err
				}
				return nil
			},
		} {
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if err := f(); err != nil {
					panic(err)
				}
			}), name)
		}
	})
}
