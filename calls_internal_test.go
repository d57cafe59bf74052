package asterisque

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/call"
)

// TestMetadata_TextOrBytes reads each value as text and as bytes.
func TestMetadata_TextOrBytes(t *testing.T) {
	m := Metadata{"text": "schön", "bytes": []byte{0xff, 0}, "empty": "", "none": []byte{}, "number": 1}
	for key, want := range map[string]string{"text": "schön", "bytes": "\xff\x00", "empty": "", "none": "", "number": "", "absent": ""} {
		require.Equal(t, want, m.Text(key), key)
		require.Equal(t, want, string(m.Bytes(key)), key)
	}
	require.NotNil(t, m.Bytes("empty"))
	require.NotNil(t, m.Bytes("none"))
	require.Nil(t, m.Bytes("number"))
	require.Nil(t, m.Bytes("absent"))
	require.Empty(t, Metadata(nil).Text("absent"))
}

// TestMetadata_MergedByKey checks the precedence of contexts and options, key by key.
func TestMetadata_MergedByKey(t *testing.T) {
	a, b, c := Metadata{"1": "a", "2": "a", "3": "a"}, Metadata{"2": "b", "3": "b"}, Metadata{"3": "c", "4": "c"}
	all := Metadata{"1": "a", "2": "b", "3": "c", "4": "c"}
	none := func(ctx context.Context, _ Metadata) context.Context { return ctx }
	for name, test := range map[string]struct {
		outer, inner func(context.Context, Metadata) context.Context
		opts         []CallOption
	}{
		"options":               {none, none, []CallOption{WithMetadata(a), WithMetadata(b), WithMetadata(nil), WithMetadata(c)}},
		"contexts, an option":   {ContextWithMetadata, ContextWithMetadata, []CallOption{WithMetadata(c)}},
		"a context and options": {ContextWithMetadata, none, []CallOption{WithMetadata(b), WithMetadata(c)}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newCallConfig(test.opts)
			m := call.MetadataIn(test.inner(ContextWithMetadata(test.outer(t.Context(), a), nil), b))
			require.Equal(t, all, Metadata(call.MergeMetadata(m, cfg.Metadata)))
		})
	}
	require.Equal(t, Metadata{"1": "a", "2": "a", "3": "a"}, a)
	require.Equal(t, Metadata{"2": "b", "3": "b"}, b, "nobody changes what callers hand over")
}

// TestMetadata_UnservedContext has a context for calls: it is not the context of a handler, which
// has metadata.
func TestMetadata_UnservedContext(t *testing.T) {
	ctx := ContextWithMetadata(t.Context(), Metadata{"k": "v"})
	require.Nil(t, MetadataOf(t.Context()))
	require.Nil(t, MetadataOf(ctx), "that is for calls made with it")
	require.Nil(t, SessionOf(ctx))
	require.Equal(t, t.Context(), ContextWithMetadata(t.Context(), Metadata{}), "nothing to say")
}
