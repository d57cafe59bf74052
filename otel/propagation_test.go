package asterisqueotel

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/asterisque-go/asterisque/codec/message"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceContext_Travels(t *testing.T) {
	for _, sent := range []string{parent, parent + "\na=1", parent + "\na=1,b@c=2"} {
		require.Equal(t, sent, string(inject(extract(t.Context(), []byte(sent)))))
	}
	require.Nil(t, inject(t.Context()), "no trace, no bytes")
}

func TestTraceContext_Invalid(t *testing.T) {
	for _, sent := range []string{
		"", "\n", "\x00", parent[:50], parent + "x", "ff" + parent[2:], strings.ToUpper(parent), "00-00000000000000000000000000000000-b7ad6b7169203331-01", "\n" + parent, strings.Repeat("x", message.MaxTrace),
	} {
		require.Equal(t, t.Context(), extract(t.Context(), []byte(sent)), "%q", sent)
	}
	ctx := extract(t.Context(), []byte(parent+"\nnot a state,,=="))
	require.Equal(t, parent, string(inject(ctx)), "a bad tracestate does not spoil the rest")
}

func TestTraceContext_LongTracestate(t *testing.T) {
	long := "long=" + strings.Repeat("x", 130)
	for _, c := range []struct {
		state string
		most  int
		want  string
	}{
		{"", 10, ""},
		{"a=1,b=2", 7, "a=1,b=2"},
		{"a=1,b=2", 6, "a=1"},
		{"a=1,b=2,c=3", 7, "a=1,b=2"},
		{"a=1," + long + ",b=2", 20, "a=1,b=2"},
		{long + ",a=1," + long + "2", 150, long + ",a=1"},
		{long, 100, ""},
		{"a=1", 0, ""},
		{"a=1", -1, ""},
	} {
		require.Equal(t, c.want, fit(c.state, c.most), "%d bytes of %q", c.most, c.state)
	}
}

func TestTraceContext_Largest(t *testing.T) {
	members := make([]string, 32) // as many as W3C allows
	for i := range members {
		members[i] = string(rune('a'+i%26)) + string(rune('a'+i/26)) + "=" + strings.Repeat("v", 30)
	}
	ctx := extract(t.Context(), []byte(parent+"\n"+strings.Join(members, ",")))
	sent := inject(ctx)
	require.LessOrEqual(t, len(sent), message.MaxTrace)
	require.Greater(t, len(sent), message.MaxTrace-34, "as much as fits is there")
	require.Equal(t, parent, string(sent[:len(parent)]))
	_, err := trace.ParseTraceState(string(sent[len(parent)+1:]))
	require.NoError(t, err, "the rest is a tracestate")
}

// FuzzTraceContext expects that any received trace context is sent on within the bounds, and does
// not change after that.
func FuzzTraceContext(f *testing.F) {
	for _, seed := range []string{"", parent, parent + "\na=1,b=2", "01" + parent[2:] + "-more\n", parent + "\n" + strings.Repeat("k=v,", 200)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		first := inject(extract(context.Background(), sent))
		require.LessOrEqual(t, len(first), message.MaxTrace)
		require.Equal(t, first, inject(extract(context.Background(), first)))
	})
}
