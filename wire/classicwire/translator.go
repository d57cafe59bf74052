package classicwire

import (
	"sync"

	"github.com/asterisque-go/asterisque/codec/classic"
)

// translator converts messages of one protocol to the other. The reading goroutine owns its state
// for messages of the peer (in); the writing goroutine owns the state for messages of the session
// (out).
type translator struct {
	server bool // fixed

	pipes     pipeTable // these lock themselves
	generated generatedFrames
	replies   pendingReplies
	codec     agreedCodec

	params []byte       // belongs to the reading goroutine, as all below; of the current Open
	synced bool         // the peer's SyncConfig has arrived
	asked  classic.Sync // it; read again by the handshake alone, which reads and then writes

	parting bool // belongs to the writing goroutine: the end of the session was translated

	mu sync.Mutex
	// guarded by mu; the bytes that Close still sends to the peer, or nil
	farewell []byte
}

func (t *translator) init(server bool) {
	t.server = server
	t.pipes.init(server)
	t.generated.ready = make(chan struct{}, 1)
}

// goodbye returns the message that ends a classic session.
func goodbye(c classic.Codec) []byte {
	b, _ := (&classic.Control{Code: classic.CloseCode}).AppendTo(nil, c) // never fails
	return b
}

// part sets the bytes that Close sends to the peer.
func (t *translator) part(words []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.farewell = words
}

// parts returns the bytes that Close sends to the peer, or nil.
func (t *translator) parts() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.farewell
}
