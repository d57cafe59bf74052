package limits

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/stretchr/testify/require"
)

// heldCase makes messages of one kind wait.
type heldCase struct {
	name  string
	n     int
	opts  []asterisque.Option
	stuck bool               // the peer reads nothing, and the Wire has a small buffer
	add   func(*heldRig)     // adds messages of the peer
	open  func(*heldRig)     // called before the measurement
	fill  func(*heldRig)     // called instead of sending
	until func(*heldRig) int // number of waiting messages; n are awaited
	once  bool               // remembered answers count as well
	end   func(*heldRig)     // called at the end
}

func heldCases() (cases []heldCase) {
	noWindow := asterisque.WithLimits(asterisque.Limits{Window: -1})
	somebody := asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: "somebody"}, nil
	}})
	one := asterisque.WithWorkers(asterisque.Workers{Session: 1})
	waiting := func(name string, n int, function uint16, size int, meta func(i int) message.Meta, opts ...asterisque.Option) {
		cases = append(cases, heldCase{name: name, n: n, opts: append(opts, one), until: inboundMessages, once: true, add: func(r *heldRig) {
			r.open(0, waitUnary, 8, message.Meta{})
			r.before()
			for i := range n {
				var m message.Meta
				if meta != nil {
					m = meta(i)
				}
				r.open(i+1, function, size, m)
			}
		}})
	}
	stream := func(int) message.Meta { return message.Meta{Stream: true} }
	waiting("unary, no params", 4_000, waitUnary, 0, nil)
	waiting("unary, no params, a table that is just full", 8_190, waitUnary, 0, nil)
	waiting("unary, no params, a table that is half full", 8_300, waitUnary, 0, nil)
	waiting("unary, 64 B", 4_000, waitUnary, 64, nil)
	waiting("unary, 65 B", 4_000, waitUnary, 65, nil)
	waiting("unary, 200 B", 4_000, waitUnary, 200, nil)
	waiting("unary, 6000 B", 1_000, waitUnary, 6000, nil)
	waiting("unary, 40 KiB", 200, waitUnary, 40<<10, nil)
	waiting("stream, no params", 4_000, waitStream, 0, stream)
	waiting("stream, 200 B", 4_000, waitStream, 200, stream)
	waiting("stream, borrowed, 9000 B", 500, waitBorrowed, 9000, stream)
	waiting("function with key, one key", 4_000, waitKeyed, 9, func(int) message.Meta { return message.Meta{} })
	cases[len(cases)-1].add = func(r *heldRig) {
		r.open(0, waitUnary, 8, message.Meta{})
		r.before()
		for i := range 4_000 {
			r.add(&message.Open{Pipe: uint64(2*i + 2), Function: waitKeyed, Params: heldParams(7, 9)})
		}
	}
	waiting("function with key, as many keys", 4_000, waitKeyed, 9, nil)
	waiting("function with key, as many keys, 7000", 7_000, waitKeyed, 9, nil)
	waiting("durable", 4_000, waitUnary, 8, func(i int) message.Meta {
		return message.Meta{Key: binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i))}
	})
	waiting("durable, long key", 7_000, waitUnary, 8, func(i int) message.Meta {
		return message.Meta{Key: binary.BigEndian.AppendUint64(make([]byte, 56), uint64(i))}
	}, somebody)
	waiting("traced, 300 B", 4_000, waitUnary, 8, func(int) message.Meta { return message.Meta{Trace: make([]byte, 300)} }, asterisque.WithInboundInterceptors(testkit.Passes))
	waiting("trace for nobody, 300 B", 4_000, waitUnary, 8, func(int) message.Meta { return message.Meta{Trace: make([]byte, 300)} })
	for _, size := range []int{1, 300, 4000} {
		waiting(fmt.Sprintf("metadata, %d B", size), 2_000, waitUnary, 8, func(int) message.Meta {
			m, _ := message.AppendMetadata(nil, map[string]any{"k": make([]byte, size)})
			return message.Meta{Metadata: m}
		})
	}
	waiting("unknown meta, 2000 B", 1_000, waitUnary, 8, nil)
	cases[len(cases)-1].add = func(r *heldRig) {
		r.open(0, waitUnary, 8, message.Meta{})
		r.before()
		for i := range 1_000 {
			o := message.Open{Pipe: uint64(2*i + 2), Function: waitUnary, Params: heldParams(i, 9)}
			r.addFrame(withUnknown(o.AppendTo(nil), 2000))
		}
	}
	waiting("unknown meta, 50 KiB, borrowed", 100, waitBorrowed, 8<<10, nil)
	cases[len(cases)-1].add = func(r *heldRig) {
		r.open(0, waitUnary, 8, message.Meta{})
		r.before()
		for i := range 100 {
			o := message.Open{Pipe: uint64(2*i + 2), Function: waitBorrowed, Params: heldParams(i, 8<<10)}
			r.addFrame(withUnknown(o.AppendTo(nil), 50<<10))
		}
	}

	running := func(name string, n int, function uint16, size int) {
		cases = append(cases, heldCase{
			name: name, n: n, opts: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: n + 1})},
			until: func(r *heldRig) int { return r.s.Stats().Running },
			open:  func(r *heldRig) { r.apart = n * worker },
			add: func(r *heldRig) {
				for i := range n {
					r.open(i, function, size, message.Meta{Stream: true})
				}
			},
		})
	}
	running("running, no params", 1000, waitStream, 0)
	running("running, 200 B", 1000, waitStream, 200)
	running("running, 6000 B", 300, waitStream, 6000)
	running("running, 64 KiB", 100, waitStream, 64<<10)
	running("running, borrowed, 64 KiB", 100, waitBorrowed, 64<<10)
	running("running, borrowed, 9000 B", 300, waitBorrowed, 9000)
	for _, size := range []int{6000, 64 << 10} {
		running(fmt.Sprintf("running, looked at, %d B", size), 100, waitUnary, size)
		c := &cases[len(cases)-1]
		c.opts = append(c.opts, asterisque.WithInboundInterceptors(looks))
		c.add = func(r *heldRig) {
			for i := range r.n {
				r.open(i, waitUnary, size, message.Meta{})
			}
		}
	}

	blocks := func(name string, pipes, each, size int, frame func([]byte) []byte) {
		cases = append(cases, heldCase{
			name: "inbound Blocks, " + name, n: pipes * each, opts: []asterisque.Option{noWindow, asterisque.WithWorkers(asterisque.Workers{Session: pipes})}, until: inboundMessages,
			add: func(r *heldRig) {
				for i := range pipes {
					r.open(i, waitStream, 0, message.Meta{Stream: true})
				}
				r.before()
				b := message.Block{Payload: make([]byte, size)}
				for range each {
					for i := range pipes {
						b.Pipe = uint64(2 * i)
						if f := b.AppendTo(nil); frame == nil {
							r.addFrame(f)
						} else {
							r.addFrame(frame(f))
						}
					}
				}
			},
			open: func(r *heldRig) {
				require.Eventually(r.t, func() bool { return r.s.Stats().Running == pipes }, testkit.Patience, time.Millisecond)
			},
		})
	}
	blocks("1 B", 1, 20_000, 1, nil)
	blocks("1 B, 60 a pipe", 500, 60, 1, nil)
	blocks("1 B, 32 a pipe", 500, 32, 1, nil)
	blocks("1 B, 33 a pipe", 500, 33, 1, nil)
	blocks("1 B, 5 a pipe", 1000, 5, 1, nil)
	blocks("1 B, 1 a pipe", 1000, 1, 1, nil)
	blocks("100 B", 10, 1000, 100, nil)
	blocks("1 KiB", 10, 500, 1<<10, nil)
	blocks("8 KiB", 10, 50, 8<<10, nil)
	blocks("20 KiB", 10, 30, 20<<10, nil)
	blocks("32 KiB", 10, 30, 32<<10, nil)
	blocks("48 KiB", 10, 15, 48<<10, nil)
	blocks("63 KiB", 10, 15, 63<<10, nil)
	blocks("1 MiB", 5, 4, 1<<20, nil)
	blocks("8 KiB with 50 KiB of unknown meta", 10, 10, 8<<10, func(f []byte) []byte { return withUnknown(f, 50<<10) })

	out := func(name string, pipes, each, size int) {
		cases = append(cases, heldCase{
			name: "outbound Blocks, " + name, n: pipes * each, stuck: true, until: outboundMessages,
			open: func(r *heldRig) {
				for range pipes {
					p, err := r.s.Open(testkit.Background, 1, nil)
					require.NoError(r.t, err)
					r.keep = append(r.keep, p)
				}
				require.Eventually(r.t, func() bool { return outboundMessages(r) == 0 }, testkit.Patience, time.Millisecond)
				p := r.keep[0].(*pipe.Pipe)
				for range 3 { // the Wire is full
					p.Post(make([]byte, 80<<10))
				}
				r.n += outboundMessages(r)
			},
			fill: func(r *heldRig) {
				payload := make([]byte, size)
				for range each {
					for _, p := range r.keep {
						if _, err := p.(*pipe.Pipe).Post(payload); err != nil {
							r.t.Fatal(err)
						}
					}
				}
			},
			end: func(r *heldRig) {
				for _, p := range r.keep {
					p.(*pipe.Pipe).Abort(nil)
				}
			},
		})
	}
	out("1 B", 1, 20_000, 1)
	out("1 B, 10 a pipe", 500, 10, 1)
	out("1 B, 1 a pipe", 1000, 1, 1)
	out("100 B", 10, 1000, 100)
	out("1 KiB", 10, 500, 1<<10)
	out("8 KiB", 10, 100, 8<<10)
	out("48 KiB", 10, 20, 48<<10)
	out("63 KiB", 10, 20, 63<<10)
	out("1 MiB", 5, 4, 1<<20-200)

	cases = append(cases, heldCase{
		name: "outbound Opens of streams", n: 3000, stuck: true, until: outboundMessages,
		open: func(r *heldRig) {
			p, err := r.s.Open(testkit.Background, 1, nil)
			require.NoError(r.t, err)
			r.keep = make([]any, 0, 3001)
			r.keep = append(r.keep, p)
			require.Eventually(r.t, func() bool { return outboundMessages(r) == 0 }, testkit.Patience, time.Millisecond)
			for range 3 { // the Wire is full
				p.Post(make([]byte, 80<<10))
			}
			r.n += outboundMessages(r)
		},
		fill: func(r *heldRig) {
			for range 3000 {
				p, err := r.s.Open(testkit.Background, 1, nil)
				require.NoError(r.t, err)
				r.keep = append(r.keep, p)
			}
		},
		end: func(r *heldRig) {
			for _, p := range r.keep {
				p.(*pipe.Pipe).Abort(nil)
			}
		},
	})

	answers := func(name string, n int, function uint16, meta func(int) message.Meta, opts ...asterisque.Option) {
		cases = append(cases, heldCase{
			name: name, n: n, stuck: true, opts: append([]asterisque.Option{noWindow, asterisque.WithWorkers(asterisque.Workers{Session: 2})}, opts...), once: true,
			until: func(r *heldRig) int {
				st := r.s.Stats()
				return st.Outbound.Messages + st.Parked
			},
			open: func(r *heldRig) {
				p, err := r.s.Open(testkit.Background, 1, nil)
				require.NoError(r.t, err)
				r.keep = append(r.keep, p)
				require.Eventually(r.t, func() bool { return outboundMessages(r) == 0 }, testkit.Patience, time.Millisecond)
				for range 3 { // the Wire is full
					p.Post(make([]byte, 80<<10))
				}
				r.n += outboundMessages(r)
			},
			add: func(r *heldRig) {
				for i := range n {
					var m message.Meta
					if meta != nil {
						m = meta(i)
					}
					r.open(i, function, 9, m)
				}
			},
			end: func(r *heldRig) { r.keep[0].(*pipe.Pipe).Abort(nil) },
		})
	}
	answers("results, 10 B", 5000, giveSmall, nil)
	answers("results, 10 B, of streams", 5000, giveStream, stream)
	answers("results, 6000 B", 500, give6000, nil)
	answers("results, 100 KiB", 60, give100K, nil)
	answers("errors, long message", 2000, fails, nil)
	answers("errors of streams, 100 B", 2000, failsStream, stream)
	answers("errors, 256 KiB of detail", 50, failsDetail, nil)
	answers("refused: no function", 3000, 999, nil)
	little := asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(100<<10, 1<<30)})
	window, many := asterisque.WithLimits(asterisque.Limits{Window: 256 << 10}), asterisque.WithWorkers(asterisque.Workers{Session: 6000})
	answers("parked results, 10 B", 5000, giveSmall, nil, little, window, many)
	answers("parked results, 6000 B", 500, give6000, nil, little, window, many)
	answers("parked results, 100 KiB", 60, give100K, nil, little, window, many)
	answers("parked errors, 256 KiB of detail", 50, failsDetail, nil, little, window, many)
	answers("parked refusals", 3000, 999, nil, little, window, many)

	remembered := func(name string, n int, function uint16) {
		cases = append(cases, heldCase{
			name: "remembered, " + name, n: n, once: true, opts: []asterisque.Option{noWindow, asterisque.WithWorkers(asterisque.Workers{Session: 2}), asterisque.WithDurableAnswers(asterisque.DurableAnswers{Share: 1})},
			until: func(r *heldRig) int {
				if st := r.s.Stats(); st.Served < uint64(n) || st.Running+st.Waiting+st.Outbound.Messages > 0 {
					return 0
				}
				return n
			},
			open: func(r *heldRig) { go r.drain() },
			add: func(r *heldRig) {
				for i := range n {
					r.open(i, function, 9, message.Meta{Key: binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i))})
				}
			},
		})
	}
	remembered("10 B", 5000, giveSmall)
	remembered("10 B, a map that is just full", 7100, giveSmall)
	remembered("100 KiB", 60, give100K)
	remembered("long message", 500, fails)
	remembered("256 KiB of detail", 50, failsDetail)

	left := func(name string, pipes, each, size int) {
		cases = append(cases, heldCase{
			name: "left over, " + name, n: pipes * each, opts: []asterisque.Option{noWindow}, until: inboundMessages,
			open: func(r *heldRig) {
				for range pipes {
					p, err := r.s.Open(testkit.Background, 1, nil)
					require.NoError(r.t, err)
					r.keep = append(r.keep, p)
				}
			},
			add: func(r *heldRig) {
				for i := range pipes {
					for range each {
						r.add(&message.Block{Pipe: uint64(2*i + 1), Payload: make([]byte, size)})
					}
					r.add(&message.Close{Pipe: uint64(2*i + 1)})
				}
			},
			end: func(r *heldRig) {
				for _, p := range r.keep {
					for {
						if _, err := p.(*pipe.Pipe).Recv(testkit.Background); err == io.EOF {
							break
						}
					}
				}
			},
		})
	}
	left("1 KiB", 100, 30, 1<<10)
	left("1 KiB, 1 a pipe", 500, 1, 1<<10)
	left("48 KiB", 40, 5, 48<<10)

	half := func(name string, size, sent int) {
		cases = append(cases, heldCase{
			name: "half received, " + name, n: 1,
			until: func(r *heldRig) int { return min(1, r.s.Stats().Receiving/sent) },
			add: func(r *heldRig) {
				r.open(0, waitUnary, size, message.Meta{})
				r.made = r.made[:sent]
			},
			end: func(r *heldRig) { r.peer.Close() },
		})
	}
	half("3 of 4 MiB", 4<<20-100, 3<<20)
	half("300 KiB of 1 MiB", 1<<20, 300<<10)
	return cases
}
