package attack

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// dividing is a raw peer of a node with streams of function 60, whose handlers take nothing, and of
// function 61, whose handlers take one Block.
type dividing struct {
	*testkit.RawPeer
	node     *asterisque.Node
	promises message.Sync
	handlers chan *pipe.Pipe // of function 61
}

// newDividing connects a dividing peer. It is called in a bubble.
func newDividing(t *testing.T, opts ...asterisque.Option) *dividing {
	d := &dividing{handlers: make(chan *pipe.Pipe, 2000)}
	svc := asterisque.NewService()
	svc.Handle(60, "sleeps", testkit.WaitForContext)
	svc.Handle(61, "takes one", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		d.handlers <- p
		_, err := p.Recv(ctx)
		return nil, err
	})
	svc.Handle(62, "is tapped", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		d.handlers <- p
		<-ctx.Done()
		return nil, ctx.Err()
	})
	d.node = testkit.NewNode(t, append(opts, asterisque.WithService(svc))...)
	hello := testkit.Hello()
	hello.MaxMessage = 4 << 20
	d.RawPeer, d.promises = testkit.RawTo(t, d.node, hello)
	return d
}

// opens opens a stream, and begins a Block of n bytes in it.
func (d *dividing) opens(id uint64, function uint16, n int) *arriving {
	d.Send(&message.Open{Pipe: id, Function: function, Meta: message.Meta{Stream: true, Window: 1 << 20}})
	return d.begins(id, n)
}

// arriving is a Block that the peer sends in parts of the least size.
type arriving struct {
	d    *dividing
	id   uint64
	left int // bytes of its frame
}

// begins sends the first part of a Block of n bytes.
func (d *dividing) begins(id uint64, n int) *arriving {
	block := message.Block{Pipe: id}
	head, _ := block.AppendAround(nil, n)
	first := append(head, make([]byte, message.LeastPart-len(head))...)
	d.Send(&message.Part{Pipe: id, Bytes: first, Whole: uint64(len(head) + n)})
	return &arriving{d, id, len(head) + n - len(first)}
}

// sends sends the next part.
func (a *arriving) sends() {
	n := min(a.left, message.LeastPart)
	a.left -= n
	a.d.Send(&message.Part{Pipe: a.id, Bytes: make([]byte, n)})
}

// completes sends all remaining parts.
func (a *arriving) completes() {
	for a.left > 0 {
		a.sends()
	}
}

// hears waits for the session, reads until the Pong of n, and returns the highest limit of each
// pipe, the Closes, and the number of Credits.
func (d *dividing) hears(n uint64) (limits map[uint64]uint64, closed map[uint64]message.Close, credits int) {
	limits, closed = make(map[uint64]uint64), make(map[uint64]message.Close)
	synctest.Wait() // otherwise the Pong may overtake the Close of a handler
	d.Send(message.Ping{N: n})
	for {
		f := d.Frame()
		if c, err := message.ParseClose(f); err == nil {
			closed[c.Pipe] = c
			continue
		}
		c, err := message.ParseControl(f)
		require.NoError(d.T, err)
		switch c := c.(type) {
		case message.Credit:
			if !c.Opens {
				limits[c.Pipe] = max(limits[c.Pipe], c.Limit)
				credits++
			}
		case message.Pong:
			return limits, closed, credits
		}
	}
}

// TestAttackDivided_BeginAndStop announces a large Block on each of many pipes, and sends its first
// part alone.
func TestAttackDivided_BeginAndStop(t *testing.T) {
	const pipes = 1000
	for name, function := range map[string]uint16{"no handler receives": 60, "all handlers receive": 61} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDividing(t)
				for i := range uint64(pipes) {
					d.opens(2*i, function, 4<<20)
				}
				synctest.Wait()
				limits, _, _ := d.hears(1)
				granted := 0
				for i := range uint64(pipes) {
					if limits[2*i] > 4<<20 {
						granted++
					}
				}
				st := d.node.Stats().Total
				attack.Bounded(t, "Blocks of 4 MiB that have their credit, of 1,000 that were begun", granted, 4)
				attack.Bounded(t, "bytes promised for Blocks that were begun, "+name, st.Classes.Windows().Held+st.Classes.Large.Promised, 32<<20)
				attack.Bounded(t, "bytes held for Blocks that were begun, "+name, st.Receiving, 24<<20)
				require.Equal(t, function == 61, granted > 0)
			})
		})
	}
}

// TestAttackDivided_NullParts begins a large Block and gives it up, again and again.
func TestAttackDivided_NullParts(t *testing.T) {
	for name, function := range map[string]uint16{"the handler sleeps": 60, "the handler receives": 61} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDividing(t)
				const blocks = 300
				d.Send(&message.Open{Function: function, Meta: message.Meta{Stream: true, Window: 1 << 20}})
				synctest.Wait()
				sent, limit, credited := uint64(0), d.promises.Window, 0
				for i := range uint64(blocks) {
					d.begins(0, 4<<20)
					d.Send(&message.Part{GivenUp: true})
					synctest.Wait()
					sent += 4<<20 + d.promises.Overhead
					limits, closed, credits := d.hears(i + 1)
					require.Empty(t, closed)
					limit, credited = max(limit, limits[0]), credited+credits
					require.Greater(t, limit, sent, "what was given up counts as taken")
					require.Zero(t, d.node.Stats().Total.Receiving)
				}
				require.LessOrEqual(t, credited, 2*blocks+2)
				attack.Bounded(t, "bytes promised after Blocks of 1.2 GiB were given up, "+name, int(limit-sent), 8<<20)
				st := d.node.Stats().Total
				require.Zero(t, st.Classes.Large.Promised)
				d.Send(&message.Block{Payload: make([]byte, 100)})
				_, closed, _ := d.hears(blocks + 1)
				require.Len(t, closed, int(function-60), "the next Block arrives")
			})
		})
	}
}

// TestAttackDivided_OnePartPerInterval keeps credit for a large Block by a part from time to time.
func TestAttackDivided_OnePartPerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDividing(t, asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		slow, stopped := d.opens(0, 61, 2<<20), d.opens(2, 61, 2<<20)
		asleep := d.opens(4, 60, 2<<20)
		for range 20 {
			fakeclock.Sleep(40 * time.Second)
			slow.sends()
		}
		_, closed, _ := d.hears(1)
		require.Equal(t, codec.Stalled, closed[2].Abort.Code, "no part of it has come")
		require.Len(t, closed, 1)
		stopped.sends()
		asleep.sends()
		slow.completes()
		_, closed, _ = d.hears(2)
		require.Nil(t, closed[0].Abort)
		require.Len(t, closed, 1)
	})
}
