package message

import (
	"encoding/hex"
	"maps"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
)

// This file holds a second, slow encoder of all messages. The encoder lists the elements of a
// message as the specification does, and a CBOR library encodes them.

// requireSame compares the meaning of two messages: nil and empty bytes are equal, except in a
// Detail, which is present or absent.
func requireSame(t testing.TB, want, got appender) {
	t.Helper()
	require.Equal(t, meaning(want), meaning(got))
}

// meaning returns m as another encoder encodes it, with the other fields that a parser sets.
func meaning(m appender) map[string]any {
	all := map[string]any{}
	switch m := m.(type) {
	case *Open:
		all["meta"] = sameMeta(m.Meta)
	case *Block:
		all["meta"] = sameMeta(m.Meta)
	case *Close:
		if m.Abort != nil {
			all["remote"], all["ran"] = m.Abort.Remote, m.Abort.Ran
		}
	}
	frame, err := canonicalMode.Marshal(elements(m))
	all["frame"], all["err"] = hex.EncodeToString(frame), err
	return all
}

func sameMeta(m Meta) Meta {
	return Meta{TTL: m.TTL, Loss: m.Loss, Skipped: m.Skipped, Trace: append([]byte{}, m.Trace...), Key: append([]byte{}, m.Key...), Metadata: append([]byte{}, m.Metadata...), Nested: m.Nested, Within: m.Within, Stream: m.Stream, Window: m.Window, Initial: m.Initial}
}

// canonicalMode encodes as RFC 8949 section 4.2.1 requires: definite lengths, shortest integers,
// sorted map keys.
var canonicalMode = func() cbor.EncMode {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// canonical encodes m with another encoder than package message.
func canonical(t testing.TB, m appender) []byte {
	b, err := canonicalMode.Marshal(elements(m))
	require.NoError(t, err)
	return b
}

// elements returns the elements of m's frame as the specification lists them.
func elements(m appender) []any {
	switch m := m.(type) {
	case *Open:
		meta := map[uint64]any{1: m.Meta.TTL, 4: m.Meta.Trace, 5: m.Meta.Key, 8: m.Meta.Metadata}
		if m.Meta.Nested {
			meta[6] = &m.Meta.Within // 0 is an id, and sent
		}
		if m.Meta.Stream {
			meta[7] = &m.Meta.Window // 0 is a window, and sent
			meta[9] = m.Meta.Initial
		}
		return withMap([]any{1, m.Pipe, m.Function, m.Priority, nonNil(m.Params)}, meta)
	case *Block:
		list := []any{2, m.Pipe, nonNil(m.Payload)}
		if m.End {
			list[2] = nil
		}
		return withMap(list, map[uint64]any{1: m.Meta.TTL, 2: m.Meta.Loss, 3: m.Meta.Skipped})
	case *Close:
		return closeElements(m)
	case *Part:
		return partElements(m)
	case Control:
		return append([]any{0}, controlElements(m)...)
	}
	return nil
}

func partElements(m *Part) []any {
	switch {
	case m.GivenUp:
		return []any{4, m.Pipe, nil}
	case m.Whole > 0:
		return []any{4, m.Pipe, m.Bytes, m.Whole}
	}
	return []any{4, m.Pipe, m.Bytes}
}

func closeElements(m *Close) []any {
	a := m.Abort
	if a == nil {
		return []any{3, m.Pipe, true, nonNil(m.Result)}
	}
	list := []any{3, m.Pipe, false, a.Code, a.Message}
	if a.Ran == codec.Refused {
		list[2] = nil
	}
	if a.Detail != nil {
		list = append(list, a.Detail)
	}
	return list
}

func controlElements(c Control) []any {
	switch c := c.(type) {
	case Sync:
		return []any{1, c.Version, nonZero(map[uint64]any{
			1: c.Node, 2: c.Session, 3: c.Features, 4: c.MaxMessage, 5: c.Window, 6: c.Opens,
			7: c.Ping.Milliseconds(), 8: c.Timeout.Milliseconds(), 9: c.Codecs, 10: c.Credential, 11: c.Secret, 12: c.Received,
			13: c.Overhead, 14: c.NestedRoom, 15: c.NestedCalls, 16: c.Extra,
		})}
	case Ping:
		if c.Holds > 0 {
			return []any{2, c.N, c.Holds}
		}
		return []any{2, c.N}
	case Pong:
		return []any{3, c.N}
	case Credit:
		if c.Extra > 0 {
			return []any{4, orNull(c.Pipe, c.Opens), c.Limit, c.Extra}
		}
		return []any{4, orNull(c.Pipe, c.Opens), c.Limit}
	case Ack:
		return []any{5, c.Count}
	case Drain:
		return []any{6, orNull(c.Last, c.None)}
	case SessionClose:
		return []any{7, c.Code, c.Message}
	case Stop:
		return []any{8, c.Pipe}
	case Skip:
		return []any{9, c.Pipe, c.Sent}
	case UnknownControl:
		return []any{c.Code}
	}
	return nil
}

// withMap appends the non-zero values of m, if there are any.
func withMap(list []any, m map[uint64]any) []any {
	if m = nonZero(m); len(m) > 0 {
		list = append(list, m)
	}
	return list
}

func nonZero(m map[uint64]any) map[uint64]any {
	maps.DeleteFunc(m, func(_ uint64, v any) bool {
		r := reflect.ValueOf(v)
		return r.IsZero() || r.Kind() == reflect.Slice && r.Len() == 0
	})
	return m
}

func nonNil(b []byte) []byte {
	return append([]byte{}, b...)
}

func orNull(n uint64, isNull bool) any {
	if isNull {
		return nil
	}
	return n
}
