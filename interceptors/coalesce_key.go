package interceptors

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/sharing"
)

// callKey identifies equal calls.
type callKey struct {
	session *asterisque.Session // nil: any
	basis   sharing.Basis       // of a served call
	rest    [sha256.Size]byte
}

// keyOf returns the key of c with these parameters. If across is true, served calls of different
// sessions may have equal keys, if they have the same codec, node and handler.
func keyOf(ctx context.Context, c *asterisque.Call, params []byte, across bool) (k callKey) {
	known := false
	if c.Inbound() { // for an outbound call the session decides
		k.basis, known = sharing.Of(ctx)
	}
	if !across || !known {
		k.session = c.Session()
	}
	h := sha256.New()
	h.Write([]byte{byte(c.Function() >> 8), byte(c.Function()), byte(c.Priority())})
	put(h, 'p', params)
	m := c.Metadata(ctx)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		kind := byte('t')
		if _, is := m[name].([]byte); is {
			kind = 'b'
		}
		put(h, 'k', []byte(name))
		put(h, kind, m.Bytes(name))
	}
	h.Sum(k.rest[:0])
	return k
}

// put adds b, of that kind, to h, with its length, so that different lists add different bytes.
func put(h hash.Hash, kind byte, b []byte) {
	h.Write(binary.AppendUvarint([]byte{kind}, uint64(len(b))))
	h.Write(b)
}
