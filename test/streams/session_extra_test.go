package streams

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

// extraPeer connects a raw peer, in a bubble, to a node with a function 60 that reads nothing and a
// function 61 that ends at once, and returns the node's promises.
func extraPeer(t *testing.T, opts ...asterisque.Option) (*testkit.RawPeer, *asterisque.Node, message.Sync) {
	svc := asterisque.NewService()
	svc.Handle(60, "sleeps", testkit.WaitForContext)
	svc.Handle(61, "ends", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil })
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	node := asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	p, promises := testkit.RawTo(t, node, testkit.Hello())
	return p, node, promises
}

// taking is the Open of a stream that takes extra credit.
func taking(id uint64, function uint16, initial uint64) *message.Open {
	return &message.Open{Pipe: id, Function: function, Meta: message.Meta{Stream: true, Initial: initial}}
}

// credits returns the highest extra credit that has come before the Pong of a Ping, and the Closes.
func credits(p *testkit.RawPeer, n uint64) (extra uint64, closed map[uint64]message.Close) {
	closed = make(map[uint64]message.Close)
	p.Send(message.Ping{N: n})
	for {
		f := p.Frame()
		if c, err := message.ParseClose(f); err == nil {
			closed[c.Pipe] = c
			continue
		}
		c, err := message.ParseControl(f)
		require.NoError(p.T, err)
		switch c := c.(type) {
		case message.Credit:
			extra = max(extra, c.Extra)
		case message.Pong:
			return extra, closed
		}
	}
}

func TestExtra_FirstBlocksBeforeTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, node, promises := extraPeer(t, asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		defer node.Close()
		p.Send(&message.Open{Pipe: 0, Function: 60}) // it has the worker
		fill := func(id, initial uint64) map[uint64]message.Close {
			p.Send(taking(id, 60, initial))
			for sent := uint64(0); sent < promises.Window+initial; sent += 1024 {
				p.Send(&message.Block{Pipe: id, Payload: make([]byte, min(1024, promises.Window+initial-sent)-512)})
			}
			synctest.Wait()
			_, closed := credits(p, id)
			return closed
		}
		require.Empty(t, fill(2, 40_000))
		require.EqualValues(t, 40_000, node.Stats().Total.Classes.Windows().Held)
		p.Send(&message.Block{Pipe: 2})
		synctest.Wait()
		_, closed := credits(p, 3)
		require.Equal(t, codec.WindowViolation, closed[2].Abort.Code, "one Block more")
		require.Empty(t, fill(4, 0))
		synctest.Wait()
		require.Zero(t, node.Stats().Total.Classes.Windows().Held, "the aborted stream holds nothing")
	})
}

// TestExtra_MoreThanThereIs has Opens that take too much, in calls of each kind.
func TestExtra_MoreThanThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, node, promises := extraPeer(t)
		defer node.Close()
		p.Send(taking(0, 60, promises.Extra+1), taking(2, 60, 1<<53-1), taking(4, 99, promises.Extra+1), taking(6, testkit.Echo.Number(), promises.Extra+1))
		synctest.Wait()
		_, closed := credits(p, 1)
		for _, id := range []uint64{0, 2, 4, 6} {
			require.Equal(t, codec.WindowViolation, closed[id].Abort.Code)
			require.Equal(t, codec.Refused, closed[id].Abort.Ran)
		}
		require.Zero(t, node.Stats().Total.Classes.Calls.Held)
		p.Send(taking(8, 60, promises.Extra))
		synctest.Wait()
		_, closed = credits(p, 2)
		require.Empty(t, closed, "all of it is still there")
	})
}

// TestExtra_ComesBack ends streams with extra credit in every way. The room is free afterwards, and
// the peer gets new extra credit.
func TestExtra_ComesBack(t *testing.T) {
	for name, end := range map[string]func(p *testkit.RawPeer, id uint64){
		"the function ends":         func(p *testkit.RawPeer, id uint64) { p.Send(taking(id, 61, 10_000)) },
		"no such function":          func(p *testkit.RawPeer, id uint64) { p.Send(taking(id, 99, 10_000)) },
		"a function without Blocks": func(p *testkit.RawPeer, id uint64) { p.Send(taking(id, testkit.Echo.Number(), 10_000)) },
		"canceled": func(p *testkit.RawPeer, id uint64) {
			p.Send(taking(id, 60, 10_000), &message.Close{Pipe: id, Abort: codec.ErrCanceled})
		},
		"within a call that there is not": func(p *testkit.RawPeer, id uint64) {
			o := taking(id, 60, 10_000)
			o.Meta.Nested, o.Meta.Within = true, 1
			p.Send(o)
		},
		"Blocks that nobody takes": func(p *testkit.RawPeer, id uint64) {
			p.Send(taking(id, 61, 10_000), &message.Block{Pipe: id, Payload: make([]byte, 5000)})
		},
		"its time is up": func(p *testkit.RawPeer, id uint64) {
			o := taking(id, 60, 10_000)
			o.Meta.TTL = 1
			p.Send(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, node, promises := extraPeer(t)
				defer node.Close()
				left, total := promises.Extra, promises.Extra
				for i := range uint64(1000) {
					require.GreaterOrEqual(t, left, uint64(10_000), "after %d streams", i)
					end(p, 2*i)
					left -= 10_000
					fakeclock.Sleep(2 * time.Millisecond)
					extra, _ := credits(p, i)
					left += max(extra, total) - total
					total = max(extra, total)
				}
				synctest.Wait()
				require.Zero(t, node.Stats().Total.Classes.Windows().Held)
			})
		})
	}
}

// TestAttackExtra_Sleepers has a peer with streams that take extra credit and send nothing, for
// functions that read nothing.
func TestAttackExtra_Sleepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, node, promises := extraPeer(t)
		defer node.Close()
		left, total := promises.Extra, promises.Extra
		for i := range uint64(900) {
			n := min(64<<10-promises.Window, left)
			p.Send(taking(2*i, 60, n))
			left -= n
			synctest.Wait()
			extra, closed := credits(p, i)
			require.Empty(t, closed)
			left += max(extra, total) - total
			total = max(extra, total)
		}
		most := node.Stats().Total.Classes.Windows().Held + int(left)
		attack.Bounded(t, "bytes promised to 900 streams that send nothing, with a room of 32 MiB", most, 900*int(promises.Window)+4<<20)
	})
}

// extraOpener connects a node, in a bubble, to a raw peer that grants extra credit.
func extraOpener(t *testing.T, extra uint64) (*testkit.RawPeer, *asterisque.Session) {
	node := asterisque.NewNode()
	t.Cleanup(func() { node.Close() })
	hello := testkit.Hello()
	hello.Window, hello.Opens, hello.Extra = 4096, 4<<20, extra
	p, _ := testkit.RawTo(t, node, hello)
	return p, node.Sessions()[0]
}

// TestExtra_Opener has a node that opens streams at a raw peer with extra credit.
func TestExtra_Opener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := extraOpener(t, 300_000)
		open := func() (*pipe.Pipe, message.Open) {
			stream, err := s.Open(testkit.Background, 7, nil)
			require.NoError(t, err)
			return stream, p.Open()
		}
		left := uint64(300_000)
		for range 5 {
			stream, o := open()
			want := min(64<<10-4096, left/8)
			require.Equal(t, want, o.Meta.Initial)
			left -= want
			require.NoError(t, stream.Send(testkit.Background, make([]byte, 4096+want-512)), "it needs no credit")
		}
		ctx, cancel := context.WithCancel(testkit.Background)
		cancel()
		_, err := s.Open(ctx, 7, nil)
		require.ErrorIs(t, err, asterisque.ErrCanceled)
		_, err = s.Open(testkit.Background, 7, make([]byte, 8<<20))
		require.ErrorIs(t, err, asterisque.ErrTooLarge)
		p.Send(message.Credit{Opens: true, Extra: 2_000_000})
		synctest.Wait()
		_, o := open()
		require.EqualValues(t, 64<<10-4096, o.Meta.Initial)
	})
}

// TestExtra_HandedBack has an opener that sends nothing for a while, after its Open, or after an
// Open that had to wait for the wire for as long.
func TestExtra_HandedBack(t *testing.T) {
	for name, waits := range map[string]time.Duration{"at once": 0, "after a wait": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := extraOpener(t, 1_000_000)
				if waits > 0 { // the wire takes a part of it
					_, err := s.Open(testkit.Background, 7, make([]byte, 900<<10))
					require.NoError(t, err)
				}
				_, err := s.Open(testkit.Background, 7, nil)
				require.NoError(t, err)
				fakeclock.Sleep(waits)
				var open message.Open
				for {
					// the messages between the parts of the first Open count, too
					f, err := p.W.ReadFrame(message.MaxFrame)
					require.NoError(t, err)
					if o, err := message.ParseOpen(f); err == nil {
						open = o
						continue
					}
					c, _ := message.ParseControl(f)
					switch c := c.(type) {
					case message.Ping:
						p.Send(message.Pong{N: c.N})
					case message.Skip:
						if c.Pipe == open.Pipe {
							require.Positive(t, c.Sent)
							require.Equal(t, open.Meta.Initial, c.Sent, "all but the guaranteed credit")
							return
						}
					}
				}
			})
		})
	}
}

// TestExtra_NeverSent ends streams before their Opens leave: those have taken nothing.
func TestExtra_NeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := extraOpener(t, 300_000)
		// the wire takes a part of it
		_, err := s.Open(testkit.Background, 7, make([]byte, 900<<10))
		require.NoError(t, err)
		left := uint64(300_000 - 300_000/8)
		for range 10 {
			ctx, cancel := context.WithCancel(testkit.Background)
			_, err := s.Open(ctx, 7, nil)
			require.NoError(t, err)
			cancel()
			_, err = s.Open(testkit.Background, 7, nil, asterisque.WithTTL(time.Millisecond))
			require.NoError(t, err)
			fakeclock.Sleep(10 * time.Millisecond)
		}
		require.EqualValues(t, 300_000/8, p.Open().Meta.Initial)
		synctest.Wait()
		_, err = s.Open(testkit.Background, 7, nil)
		require.NoError(t, err)
		require.Equal(t, left/8, p.Open().Meta.Initial)
	})
}
