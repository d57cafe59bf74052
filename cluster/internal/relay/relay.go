// Package relay resumes a session at any node of a name. A peer that has lost its wire may
// reconnect to another node than the one that has its session, for example behind a load balancer.
// Each node keeps a record of its sessions in a bucket. The node to which the peer reconnects reads
// the record, dials the node of the session through NATS, and passes the frames of the peer on. For
// the peer and for its session this is an ordinary resume.
//
// With TLS the two nodes prove to each other that they belong to the name: only then the identity
// of the peer, which the relaying node has verified, is trusted.
package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// Config describes the node of a [Relay].
type Config struct {
	Name string // shared by the nodes that resume each other's sessions
	ID   string

	// TLS is the configuration for wires between the nodes, each of which proves Identity; nil: no
	// TLS.
	TLS      *tls.Config
	Identity string

	// Subject returns the subject at which a node of the name accepts relayed peers.
	Subject func(id string) string

	Life       time.Duration // time without a sign of life after which a node counts as lost
	RecordLife time.Duration // time after which a record expires that is not renewed
}

// Links connect a relay to NATS and to its node.
type Links struct {
	NATS        *nats.Conn
	Node        *asterisque.Node
	Alive       jetstream.KeyValue // the signs of life of the nodes
	Records     jetstream.KeyValue // of the sessions
	Reconnected *wait.Notice       // NATS has reconnected, or may have lost its data
}

// Relay is the part of one node: it keeps the records of its sessions, relays peers to other nodes,
// and accepts relayed peers.
type Relay struct {
	cfg     Config // fixed
	links   Links  // set by connect, and fixed then
	records *records
	running sync.WaitGroup // the goroutines of serve; all end with its life

	mu     sync.Mutex
	nobody map[string]time.Time // since when a node has no responder, by its id; guarded by mu
}

// New returns a relay, which has to be connected before its node serves the first peer.
func New(cfg Config) *Relay {
	return &Relay{cfg: cfg, records: newRecords(cfg), nobody: make(map[string]time.Time)}
}

// Resume returns the part of the node's options by which it uses the relay. It does not set how
// long sessions wait for their peers.
func (rl *Relay) Resume() asterisque.Resume {
	return asterisque.Resume{Records: rl.records, Elsewhere: rl.elsewhere}
}

// Connect gives the relay its links.
func (rl *Relay) Connect(l Links) (err error) {
	rl.links = l
	return rl.records.connect(l)
}

// Serve accepts the peers that other nodes of the name relay to this one, until life ends. start
// bounds the wait for NATS.
func (rl *Relay) Serve(start, life context.Context) error {
	rl.running.Go(func() { rl.records.keep(life) }) // ends with life
	return rl.listen(start, life)
}

// Wait waits until the relay has ended, after the end of its life.
func (rl *Relay) Wait() { rl.running.Wait() }

// returnTime is the time within which a node without a responder may still reconnect to NATS.
const returnTime = 3 * time.Second

// elsewhere implements Resume.Elsewhere.
func (rl *Relay) elsewhere(ctx context.Context, r asterisque.SessionRecord, p asterisque.Peer) (wire.Wire, error) {
	w, err := natswire.Dial(ctx, rl.links.NATS, rl.cfg.Subject(r.Node), rl.dialTLS())
	switch {
	case err == nil:
		rl.isThere(r.Node)
		return rl.ask(ctx, w, r, p)
	case errors.Is(err, natswire.ErrNobody) && rl.isGone(ctx, r.Node):
		return nil, nil
	}
	return nil, err
}

func (rl *Relay) isThere(id string) {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	delete(rl.nobody, id)
}

// isGone reports whether a node without a responder in NATS is gone: it may be about to reconnect
// to NATS, and then its sign of life still exists.
func (rl *Relay) isGone(ctx context.Context, id string) bool {
	rl.mu.Lock()
	now, life := time.Now(), rl.cfg.Life
	maps.DeleteFunc(rl.nobody, func(_ string, at time.Time) bool {
		return now.Sub(at) > life // it has returned since, or its sign of life has expired
	})
	since, known := rl.nobody[id]
	if !known {
		since = now
		rl.nobody[id] = since
	}
	rl.mu.Unlock()
	if time.Since(since) < returnTime {
		_, err := rl.links.Alive.Get(ctx, rl.cfg.Name+"."+id)
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return false
		}
	}
	rl.isThere(id) // or a later node with that id
	return true
}
