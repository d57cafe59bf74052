package piping_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// marking is an interceptor that appends its name to all payloads.
func marking(name string) piping.StreamInterceptor {
	mark := func(b []byte) ([]byte, error) { return append(bytes.Clone(b), name...), nil }
	return piping.StreamInterceptor{
		Send: mark,
		Recv: mark,
		End: func(result []byte, err error) ([]byte, error) {
			if err != nil {
				a := codec.AbortOf(err)
				return nil, a.Withf("%s%s", a.Message, name)
			}
			return mark(result)
		},
	}
}

// wrapped is newPipe with the interceptors all.
func wrapped(all ...piping.StreamInterceptor) (*pipe.Pipe, *piping.End, *port) {
	p, end, port := newPipe(piping.Config{})
	end.Wrap(all...)
	return p, end, port
}

// sends are the ways in which a Block is sent.
var sends = map[string]func(p *pipe.Pipe, payload []byte) error{
	"Send": func(p *pipe.Pipe, payload []byte) error { return p.Send(background, payload) },
	"Post": func(p *pipe.Pipe, payload []byte) error { _, err := p.Post(payload); return err },
	"Give": func(p *pipe.Pipe, payload []byte) error {
		mem := buffer.Take(len(payload))
		return (*piping.End)(p).Give(background, mem, copy(mem.B, payload))
	},
}

// eachSend runs test for each way to send a Block.
func eachSend(t *testing.T, test func(t *testing.T, send func(*pipe.Pipe, []byte) error)) {
	for name, send := range sends {
		t.Run(name, func(t *testing.T) { test(t, send) })
	}
}

func TestAround_FirstIsOutermost(t *testing.T) {
	eachSend(t, func(t *testing.T, send func(*pipe.Pipe, []byte) error) {
		p, end, port := wrapped(marking("1"), piping.StreamInterceptor{}, marking("2"))
		payload := []byte("b")
		require.NoError(t, send(p, payload))
		require.Equal(t, "b", string(payload))
		require.NoError(t, p.CloseSend())
		require.Equal(t, []string{"b12", "end"}, port.sent, "the end is no Block")

		end.BlockArrived(block("b"))
		b, err := p.Recv(background)
		require.NoError(t, err)
		require.Equal(t, "b21", string(b.Payload))
		b.Release()
		end.EndArrived(0)
		_, err = p.Recv(background)
		require.Equal(t, io.EOF, err)

		end.CloseArrived([]byte("r"), nil)
		result, err := p.Result(background)
		require.NoError(t, err)
		require.Equal(t, "r21", string(result))
	})
}

func TestAround_Empty(t *testing.T) {
	for _, all := range [][]piping.StreamInterceptor{nil, {{}, {}}} {
		_, over, _ := newPipe(piping.Config{})
		over.Abort(codec.ErrStopped)
		over.Wrap(all...)
		_, err := over.Result(background)
		require.ErrorIs(t, err, codec.ErrStopped)

		p, end, port := wrapped(all...)
		require.NoError(t, p.Send(background, []byte("b")))
		require.Equal(t, []string{"b"}, port.sent)
		end.BlockArrived(block("b"))
		b, err := p.Recv(background)
		require.NoError(t, err)
		require.Equal(t, "b", string(b.Payload))
		end.CloseArrived([]byte("r"), nil)
		<-p.Done()
		result, err := p.Result(background)
		require.NoError(t, err)
		require.Equal(t, "r", string(result))
		require.ErrorIs(t, p.Send(background, nil), pipe.ErrClosed)
	}
}

func TestAround_WindowCountsSent(t *testing.T) {
	eachSend(t, func(t *testing.T, send func(*pipe.Pipe, []byte) error) {
		p, end, _ := newPipe(piping.Config{SendLimit: 10_000})
		end.Wrap(piping.StreamInterceptor{Send: func([]byte) ([]byte, error) { return make([]byte, 100), nil }})
		require.NoError(t, send(p, []byte("b")))
		require.EqualValues(t, overhead+100, end.Account().Sent)
		end.Dropped(100)
		require.Zero(t, end.Account().Sent)
	})
}

func TestAround_AsksForSent(t *testing.T) {
	p, end, _ := newPipe(piping.Config{SendLimit: overhead + 99})
	end.Wrap(piping.StreamInterceptor{Send: func([]byte) ([]byte, error) { return make([]byte, 100), nil }})
	_, err := p.Post(nil)
	require.ErrorIs(t, err, codec.ErrOverloaded)
	require.ErrorIs(t, contextual(p, time.Millisecond), codec.ErrExpired)
	end.CreditArrived(overhead + 100)
	require.NoError(t, p.Send(background, nil))
}

func TestAround_WindowCountsReceived(t *testing.T) {
	room := flow.NewBudget(&plan)
	p, end, port := running(t, room)
	end.Wrap(piping.StreamInterceptor{Recv: func([]byte) ([]byte, error) { return make([]byte, 5000), nil }})
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(100)))
	b, err := p.Recv(background)
	require.NoError(t, err)
	require.Len(t, b.Payload, 5000)
	require.EqualValues(t, overhead+100, end.Account().Taken)
	require.Equal(t, 1, port.taken)
}

func TestAround_BecomesTooLarge(t *testing.T) {
	eachSend(t, func(t *testing.T, send func(*pipe.Pipe, []byte) error) {
		extra := 0
		p, end, port := wrapped(piping.StreamInterceptor{Send: func(b []byte) ([]byte, error) { return make([]byte, 1<<20+extra), nil }})
		require.NoError(t, send(p, []byte("b")), "as much as the peer takes")
		extra = 1
		err := send(p, []byte("b"))
		require.ErrorIs(t, err, codec.ErrTooLarge)
		require.ErrorContains(t, err, "a Block of 1 bytes has become one of 1048577 before it was sent, and the peer takes 1048576")
		require.Len(t, port.sent, 1)
		require.NoError(t, end.Err(), "the pipe remains usable")
	})
}

func TestAround_Error(t *testing.T) {
	oops := errors.New("oops")
	refuse := func(b []byte) ([]byte, error) {
		if string(b) == "bad" {
			return []byte("ignored"), oops
		}
		return b, nil
	}
	never := func(b []byte) ([]byte, error) { require.NotEqual(t, "bad", string(b)); return b, nil }
	eachSend(t, func(t *testing.T, send func(*pipe.Pipe, []byte) error) {
		p, end, port := newPipe(piping.Config{SendLimit: 10_000})
		end.Wrap(piping.StreamInterceptor{Send: refuse, Recv: never}, piping.StreamInterceptor{Send: never, Recv: refuse})
		require.Equal(t, oops, send(p, []byte("bad")))
		require.Zero(t, end.Account().Sent)
		require.NoError(t, send(p, []byte("good")))
		require.Equal(t, []string{"good"}, port.sent)

		end.BlockArrived(piping.NewBlock([]byte("bad"), nil, 3, time.Time{}))
		end.BlockArrived(piping.NewBlock([]byte("good"), nil, 2, time.Time{}))
		_, err := p.Recv(background)
		require.Equal(t, oops, err)
		require.EqualValues(t, 3, p.Skipped())
		b, err := p.Recv(background)
		require.NoError(t, err)
		require.Equal(t, "good", string(b.Payload))
		require.EqualValues(t, 5, b.Skipped, "the first three are not reported")
		require.Equal(t, 2, port.taken)
	})
}

func TestAround_NotAfterEnd(t *testing.T) {
	eachSend(t, func(t *testing.T, send func(*pipe.Pipe, []byte) error) {
		asked := 0
		count := piping.StreamInterceptor{Send: func(b []byte) ([]byte, error) { asked++; return b, nil }}
		p, _, _ := wrapped(count)
		require.NoError(t, p.CloseSend())
		require.ErrorIs(t, send(p, nil), pipe.ErrEnded)
		p, end, _ := wrapped(count)
		end.StopArrived()
		require.ErrorIs(t, send(p, nil), codec.ErrStopped)
		p.Abort(codec.ErrUnauthorized)
		require.ErrorIs(t, send(p, nil), codec.ErrUnauthorized)
		require.Zero(t, asked)
	})
}

func TestAround_RefusedBlock(t *testing.T) {
	eachSend(t, func(t *testing.T, send func(*pipe.Pipe, []byte) error) {
		p, end, port := newPipe(piping.Config{SendLimit: 10_000})
		end.Wrap(marking("longer"))
		port.refuse = codec.ErrOverloaded
		require.ErrorIs(t, send(p, []byte("b")), codec.ErrOverloaded)
		require.Zero(t, end.Account().Sent)
	})
}

// given is a port that records the memory of the Blocks to send.
type given struct {
	*port
	mems []*buffer.Buffer
}

func (g *given) Send(_ context.Context, b piping.Outgoing) error {
	g.mems = append(g.mems, b.Memory)
	return g.refuse
}

func (g *given) Post(b piping.Outgoing) (limits.State, error) {
	return limits.Ready, g.Send(background, b)
}

// TestAround_GivenMemory takes a reused buffer as the sign of its release. Pools may lose a buffer
// now and then.
func TestAround_GivenMemory(t *testing.T) {
	same := func(b []byte) ([]byte, error) { return b, nil }
	for name, c := range map[string]struct {
		send                func([]byte) ([]byte, error)
		refuse              error
		passed, releasedToo bool
	}{
		"the same bytes":                 {send: same, passed: true},
		"fewer of them":                  {send: func(b []byte) ([]byte, error) { return b[:1], nil }, releasedToo: true},
		"the last of them":               {send: func(b []byte) ([]byte, error) { return b[1:], nil }, releasedToo: true},
		"as many other bytes":            {send: func(b []byte) ([]byte, error) { return bytes.Clone(b), nil }, releasedToo: true},
		"others":                         {send: marking("!").Send, releasedToo: true},
		"none":                           {send: func([]byte) ([]byte, error) { return nil, nil }, releasedToo: true},
		"other bytes, which are refused": {send: marking("!").Send, refuse: codec.ErrOverloaded},
		"the same, which is refused":     {send: same, refuse: codec.ErrOverloaded, passed: true},
	} {
		t.Run(name, func(t *testing.T) {
			released := 0
			for i := range 100 {
				_, end, base := newPipe(piping.Config{})
				g := &given{port: base}
				base.refuse = c.refuse
				end.Init(piping.Config{Port: g, Terms: new(piping.Terms), SendLimit: piping.Unlimited, Granted: piping.Unlimited})
				end.Wrap(piping.StreamInterceptor{Send: c.send})
				mem := buffer.Take(5000)
				var err error
				if i < 50 {
					err = end.Give(background, mem, 4900)
				} else {
					_, err = end.Post(piping.Outgoing{Payload: mem.B[:4900], Memory: mem})
				}
				require.ErrorIs(t, err, c.refuse)
				if c.passed {
					require.Equal(t, []*buffer.Buffer{mem}, g.mems)
				} else {
					require.Equal(t, []*buffer.Buffer{nil}, g.mems)
				}
				again := buffer.Take(5000)
				if again == mem {
					released++
				}
				again.Release()
				if i == 49 || i == 99 {
					require.Equal(t, c.releasedToo, released > 0, "%d were released", released)
					released = 0
				}
			}
		})
	}
}

func TestAround_ReleasesMemory(t *testing.T) {
	for name, recv := range map[string]func([]byte) ([]byte, error){
		"other bytes": marking("!").Recv,
		"some of it":  func(b []byte) ([]byte, error) { return b[1:2], nil },
		"changed":     func(b []byte) ([]byte, error) { b[0] = '!'; return b, nil },
		"nothing":     func([]byte) ([]byte, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			released := 0
			for range 100 {
				p, end, _ := wrapped(piping.StreamInterceptor{Recv: recv})
				mem := buffer.Take(5000)
				end.BlockArrived(piping.NewBlock(mem.B[:4900], mem, 0, time.Time{}))
				b, err := p.Recv(background)
				require.NoError(t, err)
				b.Release()
				again := buffer.Take(5000)
				if again == mem {
					released++
				}
				again.Release()
			}
			require.Positive(t, released)
		})
	}
}

func TestAround_ExpiredBlocks(t *testing.T) {
	var seen strings.Builder
	p, end, _ := wrapped(piping.StreamInterceptor{Recv: func(b []byte) ([]byte, error) { seen.Write(b); return b, nil }})
	end.BlockArrived(piping.NewBlock([]byte("old"), nil, 0, time.Now().Add(-time.Second)))
	end.BlockArrived(block("new"))
	b, err := p.Recv(background)
	require.NoError(t, err)
	require.EqualValues(t, 1, b.Skipped)
	require.Equal(t, "new", seen.String())
}
