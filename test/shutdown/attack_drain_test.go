package shutdown

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/stretchr/testify/require"
)

// drainer is a hostile server: it sends Drain on each of its sessions after a while, and stays. It
// answers calls of function 1 at once, calls back for those of 3 before it answers, a minute later,
// and never answers calls of any other function.
type drainer struct {
	t     *testing.T
	after time.Duration // after the handshake
	say   []message.Control
	calls bool // it calls function 10 fifty times, one each second from a while before the Drain on

	mu    sync.Mutex
	wires []wire.Wire // guarded by mu; of its sessions
}

func (d *drainer) dial(context.Context) (wire.Wire, error) {
	a, b := wire.Pipe()
	d.mu.Lock()
	d.wires = append(d.wires, b)
	d.mu.Unlock()
	go d.serve(b) // ends with the wire
	return a, nil
}

func (d *drainer) sessions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.wires)
}

func (d *drainer) serve(w wire.Wire) {
	var mu sync.Mutex // held by the writer
	write := func(m interface{ AppendTo([]byte) []byte }) error {
		mu.Lock()
		defer mu.Unlock()
		return w.WriteFrames([][]byte{m.AppendTo(nil)})
	}
	if _, err := w.ReadFrame(8 << 10); err != nil {
		return
	}
	h := testkit.Hello()
	h.Session = make([]byte, message.SessionSize)
	write(h) // errors are those of a wire that has ended
	time.AfterFunc(d.after, func() {
		for _, c := range d.say {
			write(c)
		}
	})
	if d.calls {
		go func() { // ends with the wire
			fakeclock.Sleep(d.after - 10*time.Second)
			for id := uint64(1); id < 100; id += 2 {
				fakeclock.Sleep(time.Second)
				if write(&message.Open{Pipe: id, Function: 10, Params: []byte{0x60}}) != nil {
					return
				}
			}
		}()
	}
	for {
		f, err := w.ReadFrame(1 << 20)
		if err != nil {
			w.Close()
			return
		}
		if c, err := message.ParseControl(f); err == nil {
			if ping, ok := c.(message.Ping); ok {
				write(message.Pong{N: ping.N})
			}
		} else if o, err := message.ParseOpen(f); err == nil && o.Function == 1 {
			write(&message.Close{Pipe: o.Pipe, Result: []byte{0x60}})
		} else if err == nil && o.Function == 3 {
			time.AfterFunc(time.Minute, func() {
				write(&message.Open{Pipe: 1, Function: 10, Params: []byte{0x60}, Meta: message.Meta{Nested: true, Within: o.Pipe}})
			})
		} else if c, err := message.ParseClose(f); err == nil && c.Abort == nil && !d.calls {
			write(&message.Close{Pipe: 0, Result: []byte("called back")})
		}
	}
}

// TestAttackDrain_NotMeant has a server that sends Drain and does not close: calls move to another
// session, and the old one ends.
func TestAttackDrain_NotMeant(t *testing.T) {
	for name, drain := range map[string]message.Drain{"beyond none": {None: true}, "beyond all": {Last: 1<<53 - 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := asterisque.NewService()
				svc.Handle(10, "sleep", testkit.WaitForContext)
				node := asterisque.NewNode(asterisque.WithService(svc))
				defer node.Close()
				d := &drainer{t: t, after: time.Hour + 500*time.Millisecond, say: []message.Control{drain, drain}, calls: true}
				conn, err := node.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: d.dial})
				require.NoError(t, err)
				var failed atomic.Int64
				for range 449 {
					fakeclock.Sleep(10 * time.Second)
					if _, err := conn.Call(testkit.Background, 1, nil); err != nil {
						failed.Add(1)
					}
				}
				require.Zero(t, failed.Load())
				require.Equal(t, 2, d.sessions())
				require.Len(t, node.Sessions(), 1, "the old one has been closed although calls of its peer run there")
				conn.Close()
				fakeclock.Sleep(2 * time.Hour) // until the server has noticed
			})
		})
	}
}

// TestAttackDrain_EverySession has a server that sends Drain at once on each session and never
// answers: the client backs off, and its number of sessions is bounded.
func TestAttackDrain_EverySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		d := &drainer{t: t, after: 100 * time.Millisecond, say: []message.Control{message.Drain{Last: 1<<53 - 1}}}
		conn, err := node.Connect(testkit.Background, "", asterisque.ReconnectConfig{First: 100 * time.Millisecond, Most: time.Second, Dial: d.dial})
		require.NoError(t, err)
		fakeclock.Sleep(10 * time.Second)
		require.LessOrEqual(t, d.sessions(), 30, "with a growing backoff")
		require.GreaterOrEqual(t, d.sessions(), 8)
		require.LessOrEqual(t, len(node.Sessions()), 3, "the present one, and those that are just closing")

		var calls sync.WaitGroup
		for range 100 { // none of which is answered
			calls.Go(func() {
				_, err := conn.Call(testkit.Background, 2, nil)
				require.ErrorIs(t, err, asterisque.ErrSessionClosed)
			})
			fakeclock.Sleep(2 * time.Second)
		}
		before := d.sessions()
		require.Equal(t, 16, len(node.Sessions()), "the bound of old sessions")
		fakeclock.Sleep(time.Hour)
		require.Equal(t, before, d.sessions(), "no new session before one of them has ended")
		conn.Close()
		calls.Wait()
		require.Empty(t, node.Sessions())
		fakeclock.Sleep(time.Second)
	})
}
