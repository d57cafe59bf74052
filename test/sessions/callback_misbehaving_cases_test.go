package sessions

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// spoilt is the misbehaviour that encoded and decoded values perform.
var spoilt atomic.Pointer[misbehaviour]

// badOut misbehaves during encoding, badIn during decoding.
type (
	badOut string
	badIn  string
)

func (b badOut) MarshalCBOR() ([]byte, error) {
	spoilt.Load().hook()
	return cbor.Marshal(string(b))
}

func (b *badIn) UnmarshalCBOR(data []byte) error {
	spoilt.Load().hook()
	return cbor.Unmarshal(data, (*string)(b))
}

var (
	badFunc    = asterisque.Func[string, string](20, "func")
	badInline  = asterisque.Func[string, string](21, "inline")
	badStream  = asterisque.Stream[string, string, string, string](22, "stream")
	badKey     = asterisque.Func[string, string](23, "key")
	badParams  = asterisque.Func[badOut, string](24, "params out")
	badResult  = asterisque.Func[string, badOut](25, "result out")
	badSent    = asterisque.Stream[string, string, badOut, string](26, "element out")
	paramsIn   = asterisque.Func[badIn, string](27, "params in")
	resultIn   = asterisque.Func[string, badIn](28, "result in")
	elementIn  = asterisque.Stream[string, string, badIn, string](29, "element in")
	badError   = asterisque.Func[string, string](30, "error")
	keyParams  = asterisque.Func[badIn, string](31, "key of params in")
	badHandler = uint16(32)
	aroundPipe = asterisque.Stream[string, string, string, string](33, "around")
)

// badText is an error that misbehaves in Error.
type badText struct{ m *misbehaviour }

func (e badText) Error() string { e.m.hook(); return "text" }

// service returns the service of both nodes.
func (m *misbehaviour) service() *asterisque.Service {
	spoilt.Store(m)
	svc := testkit.EchoService()
	same := func(ctx context.Context, s string) (string, error) { m.hookIn(ctx); return s, nil }
	badFunc.Handle(svc, same)
	badInline.Handle(svc, same, asterisque.WithInline())
	badStream.Handle(svc, func(ctx context.Context, s string, _ *asterisque.Pipe[string, string]) (string, error) {
		return same(ctx, s)
	})
	aroundPipe.Handle(svc, func(ctx context.Context, s string, p *asterisque.Pipe[string, string]) (string, error) {
		return s, p.Send(ctx, s)
	})
	plain := func(_ context.Context, s string) (string, error) { return s, nil }
	badKey.Handle(svc, plain, asterisque.WithKey(func(s string) string { m.hook(); return s }))
	badParams.Handle(svc, func(_ context.Context, s badOut) (string, error) { return string(s), nil })
	badResult.Handle(svc, func(_ context.Context, s string) (badOut, error) { return badOut(s), nil })
	badSent.Handle(svc, func(ctx context.Context, s string, p *asterisque.Pipe[badOut, string]) (string, error) {
		return s, p.Send(ctx, badOut(s))
	})
	paramsIn.Handle(svc, func(_ context.Context, s badIn) (string, error) { return string(s), nil })
	resultIn.Handle(svc, func(_ context.Context, s string) (badIn, error) { return badIn(s), nil })
	elementIn.Handle(svc, func(ctx context.Context, s string, p *asterisque.Pipe[badIn, string]) (string, error) {
		return s, p.Send(ctx, badIn(s))
	})
	badError.Handle(svc, func(context.Context, string) (string, error) { return "", badText{m} })
	keyParams.Handle(svc, func(_ context.Context, s badIn) (string, error) { return string(s), nil },
		asterisque.WithKey(func(s badIn) string { return string(s) }))
	svc.Handle(badHandler, "handler", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		m.hookIn(ctx)
		return params, nil
	})
	return svc
}

// in makes a call of f from the peer; out makes one from the node.
func in[P ~string, R any](f asterisque.Function[P, R]) func(m *misbehaviour) error {
	return func(m *misbehaviour) error {
		return m.call(func(ctx context.Context, s *asterisque.Session) error { _, err := f.Call(ctx, s, "x"); return err })
	}
}

func out[P ~string, R any](f asterisque.Function[P, R]) func(m *misbehaviour) error {
	return func(m *misbehaviour) error {
		return m.callOut(func(ctx context.Context, s *asterisque.Session) error { _, err := f.Call(ctx, s, "x"); return err })
	}
}

// streamIn makes a call of f from the peer that receives all; streamOut makes one from the node.
func streamIn[R any](f asterisque.StreamFunction[string, string, R, string]) func(m *misbehaviour) error {
	return func(m *misbehaviour) error {
		return m.call(func(ctx context.Context, s *asterisque.Session) error { return drained(ctx, s, f) })
	}
}

func streamOut[R any](f asterisque.StreamFunction[string, string, R, string]) func(m *misbehaviour) error {
	return func(m *misbehaviour) error {
		return m.callOut(func(ctx context.Context, s *asterisque.Session) error { return drained(ctx, s, f) })
	}
}

func drained[R any](ctx context.Context, s *asterisque.Session, f asterisque.StreamFunction[string, string, R, string]) error {
	call, err := f.Open(ctx, s, "x")
	if err != nil {
		return err
	}
	for _, err := range call.All(ctx) {
		if err != nil {
			return err
		}
	}
	_, err = call.Result(ctx)
	return err
}

// around returns options with an interceptor that misbehaves at one point of a call.
func around(at string) func(m *misbehaviour) []asterisque.Option {
	return func(m *misbehaviour) []asterisque.Option {
		hook := func(here string) {
			if here == at {
				m.hook()
			}
		}
		spy := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			side := "made"
			if c.Inbound() {
				side = "served"
			}
			if c.Blocks() {
				if err := c.WrapBlocks(asterisque.Blocks{
					Send: func(b []byte) ([]byte, error) { hook(side + ", Send"); return b, nil },
					Recv: func(b []byte) ([]byte, error) { hook(side + ", Recv"); return b, nil },
					End:  func(b []byte, err error) ([]byte, error) { hook(side + ", End"); return b, err },
				}); err != nil {
					return err
				}
			}
			hook(side)
			err := next(ctx, c)
			hook(side + ", after")
			return err
		}
		return []asterisque.Option{asterisque.WithOutboundInterceptors(testkit.Passes, spy, testkit.Passes), asterisque.WithInboundInterceptors(testkit.Passes, spy, testkit.Passes)}
	}
}

// dropping makes the node drop a Block.
func dropping(m *misbehaviour) error {
	c, d := net.Pipe()
	raw := &testkit.RawPeer{T: m.t, W: wire.FromConn(c)}
	began := make(chan *asterisque.Session, 1)
	go func() {
		s, _ := m.node.Accept(testkit.Background, wire.FromConn(d))
		began <- s
	}()
	raw.Send(testkit.Hello())
	raw.Control()
	s := <-began
	m.session.Store(s)
	defer c.Close()
	p, err := s.Open(testkit.Background, 1, nil)
	if err != nil {
		return err
	}
	for range 8 {
		if _, err := p.Post(make([]byte, 60_000)); err != nil {
			return err
		}
	}
	p.Abort(nil)
	m.settles("the report has come", func() bool { return !m.armed.Load() || m.how == "returns" })
	return nil
}

func connecting(m *misbehaviour) error {
	ctx, cancel := context.WithTimeout(testkit.Background, 4*m.patience())
	defer cancel()
	how := asterisque.ReconnectConfig{First: time.Millisecond, OnState: func(c *asterisque.Connection, _ asterisque.ConnectionState, _ error) {
		m.session.Store(c.Session())
		m.hook()
	}}
	return m.connect(ctx, how)
}

func dialling(m *misbehaviour) error {
	ctx, cancel := context.WithTimeout(testkit.Background, 4*m.patience())
	defer cancel()
	return m.connect(ctx, asterisque.ReconnectConfig{First: time.Millisecond, Dial: func(ctx context.Context) (wire.Wire, error) {
		m.hook()
		return wire.Dial(ctx, m.peerURL, wire.Options{})
	}})
}

func (m *misbehaviour) connect(ctx context.Context, how asterisque.ReconnectConfig) error {
	conn, err := m.node.Connect(ctx, m.peerURL, how)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = testkit.Echo.Call(ctx, conn, "x")
	m.settles("it is called", func() bool { return !m.armed.Load() || m.how == "returns" })
	return err
}

// callbacks are all callbacks of an application.
var callbacks = []callback{
	{name: "Access.Accept", panics: "unavailable", blocks: "expired",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) { m.hook(); return nil, nil }})}
		},
		trigger: in(testkit.Echo)},
	{name: "Access.Credential", panics: "unavailable", blocks: "expired",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithAccess(asterisque.Access{Credential: func(context.Context, asterisque.Peer) ([]byte, error) { m.hook(); return []byte("x"), nil }})}
		},
		trigger: func(m *misbehaviour) error { _, err := m.node.Dial(testkit.Background, m.peerURL); return err }},
	{name: "Hooks.SessionBegun", panics: "ok",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(*asterisque.Session) { m.hook() }})}
		},
		trigger: in(testkit.Echo)},
	{name: "Hooks.SessionAway", panics: "ok",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithResume(asterisque.Resume{For: time.Minute}),
				asterisque.WithHooks(asterisque.Hooks{SessionAway: func(*asterisque.Session, error) { m.hook() }})}
		},
		trigger: resumed},
	{name: "Hooks.SessionBack", panics: "ok",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithResume(asterisque.Resume{For: time.Minute}),
				asterisque.WithHooks(asterisque.Hooks{SessionBack: func(*asterisque.Session) { m.hook() }})}
		},
		trigger: resumed},
	{name: "Hooks.SessionEnded", panics: "ok",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithHooks(asterisque.Hooks{SessionEnded: func(*asterisque.Session, error) { m.hook() }})}
		},
		trigger: func(m *misbehaviour) error {
			err := m.callOut(func(ctx context.Context, s *asterisque.Session) error { return s.Close() })
			m.settles("it is called", func() bool { return !m.armed.Load() || m.how == "returns" })
			return err
		}},
	{name: "Hooks.LimitChanged", panics: "ok",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithHooks(asterisque.Hooks{LimitChanged: func(*asterisque.Session, asterisque.Direction, limits.State) { m.hook() }})}
		},
		trigger: func(m *misbehaviour) error {
			return m.callOut(func(ctx context.Context, s *asterisque.Session) error {
				if err := s.SetLimits(limits.Limits{}, testkit.Messages(1, 1000)); err != nil {
					return err
				}
				_, err := testkit.Echo.Call(ctx, s, "x")
				m.settles("it is called", func() bool { return !m.armed.Load() || m.how == "returns" })
				return err
			})
		}},
	{name: "Hooks.Dropped", panics: "ok",
		options: func(m *misbehaviour) []asterisque.Option {
			return []asterisque.Option{asterisque.WithHooks(asterisque.Hooks{Dropped: func(*asterisque.Session, asterisque.Drop) { m.hook() }})}
		},
		trigger: dropping},
	{name: "ReconnectConfig.OnState", panics: "ok", trigger: connecting},
	{name: "ReconnectConfig.Dial", panics: "ok", trigger: dialling},
	{name: "Repository.Put", panics: "ok", options: spied("put"), trigger: resumed},
	{name: "Repository.Get", panics: "ok", options: spied("get"), trigger: resumed},
	{name: "Repository.Delete", panics: "ok", options: spied("delete"), trigger: func(m *misbehaviour) error {
		err := resumed(m)
		m.settles("it is called", func() bool { return !m.armed.Load() || m.how == "returns" })
		return err
	}},
	{name: "Interceptor, made", own: true, panics: "panicked", exits: "gone", blocks: "never", options: around("made"), trigger: out(testkit.Echo)},
	{name: "Interceptor, made, after", own: true, panics: "panicked", exits: "gone", blocks: "never", options: around("made, after"), trigger: out(testkit.Echo)},
	{name: "Interceptor, served", panics: "panicked", blocks: "expired", options: around("served"), trigger: in(testkit.Echo)},
	{name: "Interceptor, served, after", panics: "panicked", blocks: "expired", options: around("served, after"), trigger: in(testkit.Echo)},
	{name: "Interceptor of a stream, made", own: true, panics: "panicked", exits: "gone", blocks: "never", options: around("made"), trigger: streamOut(aroundPipe)},
	{name: "Interceptor of a stream, made, after", own: true, panics: "panicked", exits: "gone", blocks: "never", options: around("made, after"), trigger: streamOut(aroundPipe)},
	{name: "Interceptor of a stream, made, Recv", panics: "panicked", exits: "gone", blocks: "never", options: around("made, Recv"), trigger: streamOut(aroundPipe)},
	{name: "Interceptor of a stream, made, End", panics: "panicked", blocks: "expired", options: around("made, End"), trigger: streamOut(aroundPipe)},
	{name: "Interceptor of a stream, served", panics: "panicked", blocks: "expired", options: around("served"), trigger: streamIn(aroundPipe)},
	{name: "Interceptor of a stream, served, after", panics: "panicked", blocks: "expired", options: around("served, after"), trigger: streamIn(aroundPipe)},
	// The library also logs that the callback ended the goroutine of the handler.
	{name: "Interceptor of a stream, served, Send", skips: "ends its goroutine", panics: "panicked", blocks: "expired", options: around("served, Send"), trigger: streamIn(aroundPipe)},
	{name: "Func", panics: "panicked", blocks: "expired", trigger: in(badFunc)},
	{name: "Func, inline", panics: "panicked", blocks: "expired", trigger: in(badInline)},
	{name: "Stream", panics: "panicked", blocks: "expired", trigger: streamIn(badStream)},
	{name: "Handle", panics: "panicked", blocks: "expired", trigger: func(m *misbehaviour) error {
		return m.call(func(ctx context.Context, s *asterisque.Session) error {
			_, err := s.Call(ctx, badHandler, nil)
			return err
		})
	}},
	{name: "WithKey", panics: "panicked", blocks: "expired", trigger: in(badKey)},
	{name: "WithKey, parameters", panics: "panicked", blocks: "expired", trigger: in(keyParams)},
	{name: "error of a handler", returns: "failed", panics: "panicked", blocks: "expired", trigger: in(badError)},
	{name: "encoding parameters", own: true, panics: "panicked", exits: "gone", blocks: "never", trigger: out(badParams)},
	{name: "encoding a result", panics: "panicked", blocks: "expired", trigger: in(badResult)},
	{name: "encoding an element", panics: "panicked", blocks: "expired", trigger: streamIn(badSent)},
	{name: "decoding parameters", panics: "panicked", blocks: "expired", trigger: in(paramsIn)},
	{name: "decoding a result", own: true, panics: "panicked", exits: "gone", blocks: "never", trigger: out(resultIn)},
	{name: "decoding an element", own: true, panics: "panicked", exits: "gone", blocks: "never", trigger: streamOut(elementIn)},
	{name: "Wire.ReadFrame", panics: "session closed", skips: "blocks, closes the node", trigger: overSpy("read")},
	{name: "Wire.WriteFrames", panics: "session closed", skips: "blocks, closes the node", trigger: overSpy("write")},
	{name: "Wire.Close", panics: "ok", trigger: overSpy("close")},
}
