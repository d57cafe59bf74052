package calls

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// tells is a function that returns the metadata of its call.
var tells = asterisque.Func[string, map[string]any](40, "tells")

// asks is a function that calls tells back, as its parameters specify.
var asks = asterisque.Func[string, map[string]any](41, "asks")

// teller offers tells, its stream 42, and asks. Each also reports the metadata of its call.
func teller(told func(asterisque.Metadata), opts ...asterisque.HandlerOption) *asterisque.Service {
	svc := asterisque.NewService()
	tells.Handle(svc, func(ctx context.Context, _ string) (map[string]any, error) {
		told(asterisque.MetadataOf(ctx))
		return asterisque.MetadataOf(ctx), nil
	}, opts...)
	svc.Handle(42, "tells", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		told(asterisque.MetadataOf(ctx))
		_, err := p.Recv(ctx)
		return nil, err
	})
	asks.Handle(svc, func(ctx context.Context, how string) (map[string]any, error) {
		m := asterisque.MetadataOf(ctx)
		switch back := asterisque.SessionOf(ctx); how {
		case "all":
			return tells.Call(asterisque.ContextWithMetadata(ctx, m), back, "")
		case "more":
			return tells.Call(asterisque.ContextWithMetadata(ctx, m), back, "", asterisque.WithMetadata(asterisque.Metadata{"more": "1"}))
		default:
			return tells.Call(ctx, back, "")
		}
	})
	return svc
}

// notes collects metadata.
type notes struct {
	mu   sync.Mutex
	list []asterisque.Metadata // guarded by mu
}

func (n *notes) add(m asterisque.Metadata) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, m)
}

func (n *notes) all() []asterisque.Metadata {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]asterisque.Metadata(nil), n.list...)
}

func ignore(asterisque.Metadata) {}

// fullMetadata returns metadata of the maximum size.
func fullMetadata() asterisque.Metadata {
	m := make(asterisque.Metadata)
	for i := range 32 {
		if m[fmt.Sprintf("%02d", i)] = strings.Repeat("v", 126); i%2 == 0 {
			m[fmt.Sprintf("%02d", i)] = make([]byte, 126)
		}
	}
	return m
}

// Metadata crosses with a call.
func TestMetadata_OfCall(t *testing.T) {
	m := asterisque.Metadata{"tenant": "schön", "id": []byte{0, 0xff}, "none": ""}
	for name, opts := range map[string][]asterisque.HandlerOption{"to a worker": nil, "to the reader": {asterisque.WithInline()}} {
		t.Run(name, func(t *testing.T) {
			var n notes
			s, _ := testkit.Connect(t, teller(n.add, opts...))
			_, err := tells.Call(testkit.Background, s, "", asterisque.WithMetadata(m))
			require.NoError(t, err)
			_, err = tells.Call(asterisque.ContextWithMetadata(testkit.Background, m), s, "")
			require.NoError(t, err)
			_, err = tells.Call(asterisque.ContextWithMetadata(testkit.Background, asterisque.Metadata{"id": []byte{0, 0xff}, "none": "some"}), s, "",
				asterisque.WithMetadata(asterisque.Metadata{"tenant": "schön", "none": "any"}), asterisque.WithMetadata(asterisque.Metadata{"none": ""}))
			require.NoError(t, err)
			_, err = tells.Call(testkit.Background, s, "", asterisque.WithMetadata(fullMetadata()))
			require.NoError(t, err)
			_, err = tells.Call(testkit.Background, s, "")
			require.NoError(t, err)
			require.Equal(t, []asterisque.Metadata{m, m, m, fullMetadata(), nil}, n.all())
		})
	}
}

// Metadata crosses with a stream.
func TestMetadata_OfStream(t *testing.T) {
	var n notes
	s, _ := testkit.Connect(t, teller(n.add))
	for _, m := range []asterisque.Metadata{{"k": "v"}, fullMetadata()} {
		p, err := s.Open(asterisque.ContextWithMetadata(testkit.Background, m), 42, nil)
		require.NoError(t, err)
		require.NoError(t, p.Send(testkit.Background, nil))
		_, err = p.Result(testkit.Background)
		require.NoError(t, err)
	}
	require.Equal(t, []asterisque.Metadata{{"k": "v"}, fullMetadata()}, n.all())
}

// Metadata crosses with parameters in parts.
func TestMetadata_ParamsInParts(t *testing.T) {
	var n notes
	svc := asterisque.NewService()
	svc.Handle(42, "tells", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		n.add(asterisque.MetadataOf(ctx))
		return params, nil
	})
	s, _ := testkit.Connect(t, svc)
	for i, size := range []int{0, 5 << 10, 60 << 10, 62 << 10, 65 << 10, 300 << 10} {
		result, err := s.Call(testkit.Background, 42, make([]byte, size), asterisque.WithMetadata(fullMetadata()))
		require.NoError(t, err, size)
		require.Len(t, result, size)
		require.Equal(t, fullMetadata(), n.all()[i], size)
	}
}

// A call back has its own metadata.
func TestMetadata_OfCallBack(t *testing.T) {
	for how, want := range map[string]map[string]any{
		"none": nil,
		"all":  {"k": "v"},
		"more": {"k": "v", "more": "1"},
	} {
		t.Run(how, func(t *testing.T) {
			here := asterisque.NewNode(asterisque.WithService(teller(ignore)))
			there := asterisque.NewNode(asterisque.WithService(teller(ignore)), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
			t.Cleanup(func() { here.Close(); there.Close() })
			s, _ := testkit.ConnectNodes(t, here, there)
			got, err := asks.Call(testkit.Background, s, how, asterisque.WithMetadata(asterisque.Metadata{"k": "v"}))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// A handler that puts metadata into its context still makes calls back nested in its call.
func TestMetadata_HandlerContext(t *testing.T) {
	svc := asterisque.NewService()
	outer := make(chan *asterisque.Session, 1)
	svc.Handle(50, "back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		ctx, end := context.WithCancel(asterisque.ContextWithMetadata(ctx, asterisque.Metadata{"k": "v"}))
		defer end()
		outer <- asterisque.SessionOf(ctx)
		if asterisque.MetadataOf(ctx).Text("in") != "coming" {
			return nil, fmt.Errorf("%v", asterisque.MetadataOf(ctx))
		}
		return asterisque.SessionOf(ctx).Call(ctx, 1, nil)
	})
	p, s := dialRawMetadata(t, asterisque.WithService(svc))
	p.Send(&message.Open{Pipe: 4, Function: 50, Meta: message.Meta{Metadata: encoded(t, asterisque.Metadata{"in": "coming"})}})
	back := p.Open()
	require.True(t, back.Meta.Nested)
	require.EqualValues(t, 4, back.Meta.Within)
	require.Equal(t, encoded(t, asterisque.Metadata{"k": "v"}), back.Meta.Metadata)
	p.Send(&message.Close{Pipe: back.Pipe})
	require.Nil(t, p.Answer().Abort)
	require.Same(t, s, <-outer)
}

// A handler may change its metadata without any effect on other calls.
func TestMetadata_ChangedByHandler(t *testing.T) {
	svc := asterisque.NewService()
	tells.Handle(svc, func(ctx context.Context, _ string) (map[string]any, error) {
		m := asterisque.MetadataOf(ctx)
		clear(m.Bytes("b"))
		delete(m, "t")
		return asterisque.MetadataOf(ctx), nil
	})
	s, _ := testkit.Connect(t, svc)
	m := asterisque.Metadata{"b": []byte("bytes"), "t": "text"}
	got, err := tells.Call(testkit.Background, s, "", asterisque.WithMetadata(m))
	require.NoError(t, err)
	require.Equal(t, map[string]any(m), got)
	require.Equal(t, asterisque.Metadata{"b": []byte("bytes"), "t": "text"}, m)
}

// A context outlives its call, and with it the metadata.
func TestMetadata_AfterTheCall(t *testing.T) {
	contexts := make(chan context.Context, 1)
	svc := asterisque.NewService()
	testkit.Echo.Handle(svc, func(ctx context.Context, s string) (string, error) { contexts <- ctx; return s, nil })
	s, _ := testkit.Connect(t, svc)
	_, err := testkit.Echo.Call(testkit.Background, s, "", asterisque.WithMetadata(asterisque.Metadata{"k": "v"}))
	require.NoError(t, err)
	_, err = s.Call(testkit.Background, 999, make([]byte, 1000)) // into the memory of the first one
	require.ErrorIs(t, err, asterisque.ErrNoFunction)
	s.Close()
	require.Equal(t, asterisque.Metadata{"k": "v"}, asterisque.MetadataOf(<-contexts))
}

// The repetition arrives at another node, which runs it with the same metadata.
func TestMetadata_OfRetriedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		var first atomic.Bool
		svc := asterisque.NewService()
		tells.Handle(svc, func(ctx context.Context, _ string) (map[string]any, error) {
			n.add(asterisque.MetadataOf(ctx))
			if first.CompareAndSwap(false, true) {
				<-ctx.Done()
			}
			return asterisque.MetadataOf(ctx), ctx.Err()
		})
		conn, wires, _, _ := testkit.Link(t, svc, asterisque.ReconnectConfig{})
		other := asterisque.NewNode(asterisque.WithService(svc))
		defer other.Close()
		m := asterisque.Metadata{"k": "v", "b": []byte{1}}
		done := make(chan map[string]any)
		go func() {
			ctx := asterisque.ContextWithMetadata(testkit.Background, asterisque.Metadata{"b": []byte{1}})
			got, err := tells.Call(ctx, conn, "", asterisque.WithDurable(), asterisque.WithMetadata(asterisque.Metadata{"k": "v"}))
			if err != nil {
				t.Error(err)
			}
			done <- got
		}()
		synctest.Wait()
		wires.Mu.Lock()
		wires.To = other
		wires.Mu.Unlock()
		wires.Cut()
		require.Equal(t, map[string]any(m), <-done)
		require.Equal(t, []asterisque.Metadata{m, m}, n.all())
	})
}

// asked counts lookups in a context.
type asked struct {
	context.Context
	n int
}

func (a *asked) Value(key any) any {
	a.n++
	return a.Context.Value(key)
}

// A call reads its context once.
func TestCall_ContextReadOnce(t *testing.T) {
	s, _ := testkit.Connect(t, testkit.EchoService())
	for name, ctx := range map[string]context.Context{
		"without metadata": testkit.Background,
		"with metadata":    asterisque.ContextWithMetadata(testkit.Background, asterisque.Metadata{"k": "v"}),
	} {
		a := &asked{Context: ctx}
		_, err := testkit.Echo.Call(a, s, "x")
		require.NoError(t, err)
		require.Equal(t, 1, a.n, name)
	}
}
