package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// presence keeps the entries of this node.
type presence struct { // all but self.State and the last four are fixed
	nc    *nats.Conn
	b     buckets
	reop  func(ctx context.Context) error // makes the buckets again, if they are gone
	again *wait.Notice                    // NATS is there again
	beat  time.Duration
	log   *slog.Logger
	self  Member

	before   error  // the last one of nc before join; one goroutine at a time uses it, as all below
	revision uint64 // of the last sign of life
	entry    uint64 // the revision of the entry, when it was put last
	since    int    // how many signs were given since the entry was looked at
}

// join puts the entries of the node. They have to be taken back if it fails, as when the name is
// taken.
func (p *presence) join(ctx context.Context) error {
	p.before = p.nc.LastError()
	if err := p.putFirst(ctx); err != nil {
		return explain(p.nc, p.before, "joining as "+p.self.Name, err)
	}
	return p.ownName(ctx)
}

// put puts the entry of the node, which takes the place of one that is there, and a sign of life.
func (p *presence) put(ctx context.Context) (err error) {
	if p.entry, err = p.b.nodes.Put(ctx, p.self.key(), p.self.encode()); err != nil {
		return err
	}
	p.revision, err = p.b.alive.Put(ctx, p.self.key(), []byte(p.self.Instance))
	return err
}

// putFirst is put for a node that joins: in the place of none, or of one that it may replace.
func (p *presence) putFirst(ctx context.Context) error {
	for times := 0; ; times++ {
		was, err := p.place(ctx)
		if err != nil {
			return err
		}
		p.entry, err = p.putOver(ctx, was)
		// there is another one by now, or the server that was asked does not know of it yet
		if (errors.Is(err, jetstream.ErrKeyExists) || isConflict(err)) && wait.HoldOff(ctx, holdOffTime(times)) {
			continue
		}
		if err == nil {
			p.revision, err = p.b.alive.Put(ctx, p.self.key(), []byte(p.self.Instance))
		}
		return err
	}
}

// place returns the entry with the name and the id of this node, or nil. The error is ErrNameTaken
// if a node of another identity lives there.
func (p *presence) place(ctx context.Context) (jetstream.KeyValueEntry, error) {
	e, err := p.b.nodes.Get(ctx, p.self.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeMember(e)
	if err != nil || m.Identity == p.self.Identity {
		return e, nil
	}
	_, err = p.b.alive.Get(ctx, p.self.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, p.taken(m)
}

// putOver puts the entry in the place of another one, or where there is none, if that is still so.
func (p *presence) putOver(ctx context.Context, was jetstream.KeyValueEntry) (revision uint64, err error) {
	if was == nil {
		return p.b.nodes.Create(ctx, p.self.key(), p.self.encode())
	}
	return p.b.nodes.Update(ctx, p.self.key(), p.self.encode(), was.Revision())
}

// taken returns the ErrNameTaken of a node that has the name.
func (p *presence) taken(m Member) error {
	return fmt.Errorf("%w: %s is that of %q, whose node %s is there since %s, and this node's Config.Identity is %q", ErrNameTaken, m.Name, m.Identity, m.ID, m.Since.Format(time.RFC3339), p.self.Identity)
}

// nameOwner is whose a name is. It is kept beside the nodes, under the name alone.
type nameOwner struct {
	Identity string `json:"identity"`
}

// ownName sees to it that the name is that of this node's identity. It comes after put, so that of
// two identities which join at the same time one sees the other.
func (p *presence) ownName(ctx context.Context) error {
	own, _ := json.Marshal(nameOwner{p.self.Identity}) // a string can be encoded
	for {
		_, err := p.b.nodes.Create(ctx, p.self.Name, own)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return explain(p.nc, p.before, "taking the name "+p.self.Name, err)
		}
		e, err := p.b.nodes.Get(ctx, p.self.Name)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return explain(p.nc, p.before, "reading whose the name is", err)
		}
		var has nameOwner
		if json.Unmarshal(e.Value(), &has) == nil && has.Identity == p.self.Identity {
			return nil
		}
		if err := p.vacant(ctx, has); err != nil {
			return err
		}
		err = p.takeName(ctx, has, own, e)
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return explain(p.nc, p.before, "taking the name "+p.self.Name, err)
		}
	}
}

// takeName takes the name from an owner that has no nodes. One of these may have joined meanwhile,
// and have found that the name is its own: then it stays so.
func (p *presence) takeName(ctx context.Context, has nameOwner, own []byte, e jetstream.KeyValueEntry) error {
	revision, err := p.b.nodes.Update(ctx, p.self.Name, own, e.Revision())
	if err != nil {
		return err
	}
	if err := p.vacant(ctx, has); err != nil {
		p.b.nodes.Update(ctx, p.self.Name, e.Value(), revision)
		return err
	}
	return nil
}

// vacant returns an error if nodes of the owner of the name are there.
func (p *presence) vacant(ctx context.Context, has nameOwner) error {
	there, err := snapshot(ctx, p.b.nodes, p.self.Name+".*")
	if err != nil {
		return explain(p.nc, p.before, "reading who has the name", err)
	}
	for _, e := range there {
		m, err := decodeMember(e)
		if err == nil && m.Identity == has.Identity {
			return p.taken(m)
		}
	}
	return nil
}

// keep gives signs of life until ctx ends, and says so when the node drains. It returns when
// another node has taken the place of this one, with ErrReplaced.
func (p *presence) keep(ctx context.Context, draining <-chan struct{}) error {
	for ctx.Err() == nil {
		again := p.again.Next()
		wait := time.NewTimer(p.beat - rand.N(p.beat/5)) // not all at once
		var err error
		select {
		case <-wait.C:
			err = p.sign(ctx)
		case <-again:
			p.since = looksEach // it may be taken for lost
			err = p.sign(ctx)
		case <-draining:
			draining = nil
			p.self.State, p.since = Draining, looksEach
			err = p.sign(ctx)
		case <-ctx.Done():
		}
		wait.Stop()
		if errors.Is(err, ErrReplaced) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("cluster: this node could not say that it lives", "error", err)
		}
	}
	return nil
}

// looksEach is how many signs of life are given between two looks at the entry, which somebody may
// have written over.
const looksEach = 12

// sign gives a sign of life. If the last one is no more, the others may believe that the node is
// lost.
func (p *presence) sign(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.since++; p.since < looksEach {
		revision, err := p.b.alive.Update(ctx, p.self.key(), []byte(p.self.Instance), p.revision)
		if err == nil {
			p.revision = revision
			return nil
		}
	}
	err := p.renew(ctx)
	if err == nil || errors.Is(err, ErrReplaced) {
		return err
	}
	if err := p.reop(ctx); err != nil { // JetStream is away, or a bucket is
		return err
	}
	return p.renew(ctx)
}

// renew sees to it that the entry of the node is there as it is to be, unless another node has
// taken its place, and gives a sign of life. If it fails, the next sign is another attempt.
func (p *presence) renew(ctx context.Context) error {
	p.since = looksEach
	e, err := p.b.nodes.Get(ctx, p.self.key())
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = p.put(ctx)
		// JetStream may have lost all, and then whoever watches watches nothing
		defer p.again.Signal()
	case err != nil:
	case bytes.Equal(e.Value(), p.self.encode()):
		p.entry = e.Revision()
		p.revision, err = p.b.alive.Put(ctx, p.self.key(), []byte(p.self.Instance))
	default:
		if err = p.replaced(e); err == nil {
			err = p.put(ctx)
		}
	}
	if err == nil {
		p.since = 0
	}
	return err
}

// replaced returns ErrReplaced if an entry is that of another node that has come after this one.
// One from before may be given by a server that lags behind.
func (p *presence) replaced(e jetstream.KeyValueEntry) error {
	m, err := decodeMember(e)
	if err != nil || m.Instance == p.self.Instance || e.Revision() < p.entry {
		return nil
	}
	return fmt.Errorf("%w: %s %s, since %s", ErrReplaced, m.Name, m.ID, m.Since.Format(time.RFC3339))
}

// leave takes the entries back, if they are still this node's. What fails goes with the signs of
// life that come no more.
func (p *presence) leave(ctx context.Context) {
	e, err := p.b.nodes.Get(ctx, p.self.key())
	if err != nil {
		return
	}
	if m, err := decodeMember(e); err != nil || m.Instance != p.self.Instance {
		return
	}
	// a Purge says that the node has left, a Delete that it is lost
	p.b.nodes.Purge(ctx, p.self.key(), jetstream.LastRevision(e.Revision()))
	p.b.alive.Delete(ctx, p.self.key(), jetstream.LastRevision(p.revision))
}
