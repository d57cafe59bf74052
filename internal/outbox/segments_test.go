package outbox_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// takeAll takes a batch, joins its segments, if any, and reports it as written.
func takeAll(o *outbox.Outbox) (batch []byte, pieces int) {
	b, _ := o.Take()
	if b == nil {
		return nil, 0
	}
	s := o.Segments()
	if s == nil {
		batch = bytes.Clone(b)
	} else {
		batch = bytes.Join(s, nil)
	}
	o.Written(b)
	return batch, len(s)
}

func TestLend_LargePayload(t *testing.T) {
	b := newBox(t)
	b.Lend()
	f, _ := b.open(0)
	first, _ := b.Take() // the test is the writer from here on
	payload := bytes.Repeat([]byte("large"), 6_000)
	b.block(f, payload)
	payload[0] = 'x' // the caller owns it
	b.block(f, []byte("small"))
	require.Nil(t, b.Segments(), "of the batch being written")
	b.Written(first)

	batch, _ := b.Take()
	require.Less(t, len(batch), 100, "the payload is apart")
	s := b.Segments()
	require.Len(t, s, 3, "the bytes before it, the payload, and the bytes after it")
	require.Equal(t, byte('l'), s[1][0])
	require.Len(t, s[1], 30_000)
	b.Written(batch)
	require.Nil(t, b.Segments())
	require.Equal(t, 3, b.messages)
	require.Equal(t, 30_005, b.bytes)
}

// give moves the payload of m into memory of its own.
func give(m *outbox.Message) {
	m.Memory = buffer.Take(len(m.Payload))
	m.Payload = m.Memory.B[:copy(m.Memory.B, m.Payload)]
}

func TestLend_GivenMemory(t *testing.T) {
	b := newBox(t)
	b.Lend()
	f, _ := b.open(0)
	b.drain()
	m := outbox.Message{Type: message.BlockType, Payload: make([]byte, 30_000)}
	give(&m)
	mine := &m.Payload[0]
	_, err := b.Put(f, &m)
	require.NoError(t, err)
	require.Nil(t, m.Memory)
	batch, _ := b.Take()
	require.Same(t, mine, &b.Segments()[1][0], "without a copy")
	b.Written(batch)
}

func TestMemory_KeptOnError(t *testing.T) {
	b := newBox(t)
	f, _ := b.open(0)
	_, err := b.Put(f, &outbox.Message{Type: message.BlockType, End: true})
	require.NoError(t, err)
	m := outbox.Message{Type: message.BlockType, Payload: make([]byte, 30_000)}
	give(&m)
	_, err = b.Put(f, &m)
	require.ErrorIs(t, err, outbox.ErrEnded)
	require.NotNil(t, m.Memory)
	b.Close(nil)
	_, err = b.Put(f, &m)
	require.ErrorIs(t, err, outbox.ErrClosed)
	require.NotNil(t, m.Memory)
}

func TestLend_LonePayload(t *testing.T) {
	b := newBox(t)
	b.Lend()
	f, _ := b.open(0)
	b.drain()
	b.block(f, make([]byte, 64<<10))
	_, pieces := takeAll(b.Outbox)
	require.Zero(t, pieces, "the sender writes it, at once and without another goroutine")
}

// TestLend_MatchesCopy drives two Outboxes, one of which lends, with the same messages and drops.
func TestLend_MatchesCopy(t *testing.T) {
	sizes := []int{0, 10, 1_000, 8 << 10, 20_000, 32 << 10, 64 << 10, 100_000}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		copies, lends := newBox(t), newBox(t)
		lends.Lend()
		var flows [2][]*outbox.Flow
		lent := 0
		compare := func() {
			want, _ := takeAll(copies.Outbox)
			got, pieces := takeAll(lends.Outbox)
			require.True(t, bytes.Equal(want, got), "seed %d: %d bytes, %d bytes in %d pieces", seed, len(want), len(got), pieces)
			lent += pieces
		}
		for i := range 300 {
			switch op := rnd.IntN(20); {
			case op < 3 || len(flows[0]) == 0:
				m := outbox.Message{Type: message.OpenType, Payload: bytes.Repeat([]byte{byte(i)}, sizes[rnd.IntN(len(sizes))]), Departer: new(opening)}
				enter := rnd.IntN(2) == 0
				for j, b := range []*box{copies, lends} {
					f, own := outbox.NewFlow(0), m
					put := b.Put
					if enter {
						put = b.Enter
					}
					_, err := put(&f, &own)
					require.NoError(t, err)
					flows[j] = append(flows[j], &f)
				}
			case op < 13:
				n, payload := rnd.IntN(len(flows[0])), bytes.Repeat([]byte{byte(i)}, sizes[rnd.IntN(len(sizes))])
				given := rnd.IntN(2) == 0
				for j, b := range []*box{copies, lends} {
					m := outbox.Message{Type: message.BlockType, Payload: slices.Clone(payload), Loss: uint8(i % 2 * 64), Pressed: i%7 == 0, Held: uint32(len(payload))}
					if given {
						give(&m)
					}
					_, err := b.Put(flows[j][n], &m)
					require.NoError(t, err)
				}
			case op < 14:
				n := rnd.IntN(len(flows[0]))
				for j, b := range []*box{copies, lends} {
					b.Cancel(flows[j][n], outbox.Ended)
					flows[j] = slices.Delete(flows[j], n, n+1)
				}
			case op < 15:
				copies.Thin()
				lends.Thin()
			default:
				compare()
			}
		}
		for copies.Waiting() > 0 {
			compare()
		}
		compare()
		require.Positive(t, lent)
		require.Equal(t, copies.messages, lends.messages)
		require.Equal(t, copies.bytes, lends.bytes)
		require.Equal(t, copies.drops, lends.drops)
	}
}
