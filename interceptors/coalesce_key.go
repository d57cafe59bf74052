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

// callKey is what equal calls have in common.
type callKey struct {
	session *asterisque.Session // nil: any
	basis   sharing.Basis       // of a served call
	rest    [sha256.Size]byte
}

// keyOf returns what c, with these parameters, has in common with calls that are equal to it. If
// across is true, served ones may be on different sessions, of one codec and with one handler.
func keyOf(ctx context.Context, c *asterisque.Call, params []byte, across bool) (k callKey) {
	known := false
	if c.Served() { // the session decides for those that are made
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

// put adds b, of that kind, to h: with its length, so that different lists add different bytes.
func put(h hash.Hash, kind byte, b []byte) {
	h.Write(binary.AppendUvarint([]byte{kind}, uint64(len(b))))
	h.Write(b)
}
