package asterisqueotel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
)

// bagOf returns a context with a baggage.
func bagOf(t testing.TB, text string) context.Context {
	t.Helper()
	bag, err := baggage.Parse(text)
	require.NoError(t, err)
	return baggage.ContextWithBaggage(context.Background(), bag)
}

// telling is a service with a surround that records its baggage and metadata.
func telling(said *[]string) asterisque.Option {
	svc := asterisque.NewService()
	surround.Handle(svc, func(ctx context.Context, s string) (string, error) {
		*said = append(*said, baggage.FromContext(ctx).String())
		return asterisque.MetadataOf(ctx).Text(baggageKey), nil
	})
	count.Handle(svc, func(ctx context.Context, n int, _ *asterisque.Pipe[int, int]) (int, error) {
		*said = append(*said, baggage.FromContext(ctx).String())
		return n, nil
	})
	return asterisque.WithService(svc)
}

func TestBaggage_Travels(t *testing.T) {
	const text = "user=alice;role=admin"
	b := newBackend(t)
	var said []string
	here, _ := connect(t, b.node(), b.node(telling(&said)))
	ctx := bagOf(t, text)
	raw, err := surround.Call(ctx, here, "x")
	require.NoError(t, err)
	require.Equal(t, text, raw, "as W3C writes it")
	p, err := count.Open(ctx, here, 1)
	require.NoError(t, err)
	_, err = p.Result(ctx)
	require.NoError(t, err)
	raw, err = surround.Call(t.Context(), here, "x")
	require.NoError(t, err)
	require.Empty(t, raw)
	require.Equal(t, []string{text, text, ""}, said)
}

func TestBaggage_NestedCalls(t *testing.T) {
	b := newBackend(t)
	var said []string
	here, _ := connect(t, b.node(telling(&said)), b.node(asterisque.WithService(greeting())))
	_, err := greet.Call(bagOf(t, "user=alice"), here, "x")
	require.NoError(t, err)
	require.Equal(t, []string{"user=alice"}, said)
}

// has adds metadata to all calls.
func has(m asterisque.Metadata) asterisque.Option {
	return asterisque.WithOutboundInterceptors(func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		return next(asterisque.ContextWithMetadata(ctx, m), c)
	})
}

func TestBaggage_OnlyTrusted(t *testing.T) {
	for name, p := range acquaintances(t) {
		for _, trace := range []string{"", sampled} {
			t.Run(fmt.Sprintf("%s, trace %q", name, trace), func(t *testing.T) {
				b := newBackend(t)
				var said []string
				there := followed(Interceptor(b.opts...), asterisque.WithAccess(asterisque.Access{Accept: p.accept}), telling(&said))
				here := asterisque.NewNode(p.client, says(trace), has(asterisque.Metadata{baggageKey: "user=alice"}))
				sess, _ := connectTLS(t, here, there, p.tls)
				_, err := surround.Call(t.Context(), sess, "x")
				require.NoError(t, err)
				require.Equal(t, []string{map[bool]string{true: "user=alice", false: ""}[p.proven]}, said)
			})
		}
	}
}

func TestTrust_AskedOnce(t *testing.T) {
	b := newBackend(t)
	asked := 0
	i := Interceptor(append(b.opts, WithTrust(func(asterisque.Peer) bool { asked++; return true }))...)
	var said []string
	for _, c := range []struct {
		trace, bag string
		asked      int
	}{{"", "", 0}, {"no trace", "no baggage", 0}, {sampled, "", 1}, {"", "a=1", 1}, {sampled, "a=1", 1}} {
		here := asterisque.NewNode(says(c.trace), has(asterisque.Metadata{baggageKey: c.bag}))
		sess, _ := connect(t, here, followed(i, telling(&said)))
		asked = 0
		_, err := surround.Call(t.Context(), sess, "x")
		require.NoError(t, err)
		require.Equal(t, c.asked, asked, c)
	}
}

func TestBaggage_Invalid(t *testing.T) {
	for sent, want := range map[string]string{
		"": "", " ": "", "=": "", "a": "", "a=1,b": "a=1", "\x00=1,a=1": "a=1", "a=%zz,b=2": "b=2", strings.Repeat("x", message.MaxMetadata): "",
		",,,a=1,,,": "a=1",
	} {
		require.Equal(t, want, baggage.FromContext(unpack(t.Context(), sent)).String(), "%q", sent)
	}
}

func TestBaggage_OfProgram(t *testing.T) {
	b := newBackend(t)
	var said []string
	here, _ := connect(t, b.node(), b.node(telling(&said)))
	raw, err := surround.Call(bagOf(t, "a=1"), here, "x", asterisque.WithMetadata(asterisque.Metadata{baggageKey: "b=2", "k": "v"}))
	require.NoError(t, err)
	require.Equal(t, "b=2", raw)
	raw, err = surround.Call(bagOf(t, "a=1"), here, "x", asterisque.WithMetadata(asterisque.Metadata{"k": "v"}))
	require.NoError(t, err)
	require.Equal(t, "a=1", raw, "beside other metadata")
}

func TestBaggage_TooLarge(t *testing.T) {
	for _, c := range []struct {
		bag  string
		room int
		want string
	}{
		{"a=1,b=2", 7, "a=1,b=2"},
		{"a=1,b=2", 6, "a=1"},
		{"b=2,a=1", 6, "a=1"},
		{"a=long,b=2", 9, "b=2"},
		{"a=long,b=2,c=middle", 16, "a=long,b=2"},
		{"a=1", 3, "a=1"},
		{"a=1", 2, ""},
		{"a=1", 0, ""},
		{"a=1", -5, ""},
	} {
		require.Equal(t, c.want, pack(baggage.FromContext(bagOf(t, c.bag)), c.room), "%d bytes of %q", c.room, c.bag)
	}
}

// TestBaggage_NeverFailsCalls has calls with metadata at its bounds, and beyond.
func TestBaggage_NeverFailsCalls(t *testing.T) {
	b := newBackend(t)
	var said []string
	here, _ := connect(t, b.node(), b.node(telling(&said)))
	ctx := bagOf(t, "a=1,b=22")
	entries := func(n int) asterisque.Metadata {
		m := asterisque.Metadata{}
		for i := range n {
			m[fmt.Sprint(i)] = []byte{}
		}
		return m
	}
	bytes := func(n int) asterisque.Metadata { return asterisque.Metadata{"k": strings.Repeat("v", n-1)} }
	most := message.MaxMetadata - len(baggageKey) // for the other metadata, and the value
	for _, c := range []struct {
		others asterisque.Metadata
		want   string
	}{
		{entries(message.MaxMetadataEntries - 1), "a=1,b=22"},
		{entries(message.MaxMetadataEntries), ""},
		{bytes(most - 8), "a=1,b=22"},
		{bytes(most - 7), "a=1"},
		{bytes(most - 3), "a=1"},
		{bytes(most - 2), ""},
		{bytes(message.MaxMetadata), ""},
	} {
		raw, err := surround.Call(ctx, here, "x", asterisque.WithMetadata(c.others))
		require.NoError(t, err)
		require.Equal(t, c.want, raw)
	}
	_, err := surround.Call(ctx, here, "x", asterisque.WithMetadata(bytes(message.MaxMetadata+1)))
	require.ErrorIs(t, err, asterisque.ErrBadParams)
}

// FuzzBaggage expects that any received baggage is sent on within the bounds, and does not change
// after that.
func FuzzBaggage(f *testing.F) {
	for _, seed := range []string{"", "a=1", "a=1;p=2;q,b=%20", strings.Repeat("k=v,", 200), "ä=ö"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		pass := func(sent string) string { return pack(baggage.FromContext(unpack(context.Background(), sent)), 100) }
		first := pass(sent)
		require.LessOrEqual(t, len(first), 100)
		require.Equal(t, first, pass(first))
	})
}

func TestBaggage_BadMember(t *testing.T) {
	odd, err := baggage.NewMemberRaw("größe", "1")
	require.NoError(t, err)
	even, err := baggage.NewMemberRaw("size", "größe")
	require.NoError(t, err)
	bag, err := baggage.New(odd, even)
	require.NoError(t, err)
	require.Equal(t, "size=gr%C3%B6%C3%9Fe", pack(bag, 100))
}
