package presence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// Announcement maintains the entries of one node, from Join to Leave.
type Announcement struct { // all but self.State and the last four are immutable
	env  Env
	self Member

	before   error  // last error of NATS before join; used by one goroutine at a time, as all below
	revision uint64 // of the last sign of life
	entry    uint64 // revision of the last write of the entry
	since    int    // signs since the last check of the entry
}

// Announce returns the announcement of a node, which begins with [Announcement.Join].
func Announce(env Env, self Member) *Announcement {
	return &Announcement{env: env, self: self}
}

// Addresses returns the addresses in the entry of the node.
func (p *Announcement) Addresses() []string { return p.self.Addresses }

// Check returns an [ErrNameTaken] if the place of the node belongs to a node of another identity.
func (p *Announcement) Check(ctx context.Context) error {
	before := p.env.NATS.LastError()
	_, err := p.place(ctx)
	return explained(p.env.NATS, before, "joining as "+p.self.Name, err)
}

// Join writes the entries of the node. If it fails, for example because the name is taken, the
// caller has to remove them.
func (p *Announcement) Join(ctx context.Context) error {
	p.before = p.env.NATS.LastError()
	if err := p.putFirst(ctx); err != nil {
		return explained(p.env.NATS, p.before, "joining as "+p.self.Name, err)
	}
	return p.ownName(ctx)
}

// put writes the entry of the node, replacing any other, and a sign of life.
func (p *Announcement) put(ctx context.Context) (err error) {
	if p.entry, err = p.env.Nodes.Put(ctx, p.self.Key(), p.self.Encode()); err != nil {
		return err
	}
	p.revision, err = p.env.Alive.Put(ctx, p.self.Key(), []byte(p.self.Instance))
	return err
}

// putFirst is put for a node that joins: it replaces only an entry that it may replace.
func (p *Announcement) putFirst(ctx context.Context) error {
	for times := 0; ; times++ {
		was, err := p.place(ctx)
		if err != nil {
			return err
		}
		p.entry, err = p.putOver(ctx, was)
		// the entry has changed, or the server that answered does not know of it yet
		if (errors.Is(err, jetstream.ErrKeyExists) || kv.IsConflict(err)) && wait.HoldOff(ctx, kv.Backoff(times)) {
			continue
		}
		if err == nil {
			p.revision, err = p.env.Alive.Put(ctx, p.self.Key(), []byte(p.self.Instance))
		}
		return err
	}
}

// place returns the present entry with the name and the id of this node, or nil. The error is
// ErrNameTaken if it belongs to a node of another identity.
func (p *Announcement) place(ctx context.Context) (jetstream.KeyValueEntry, error) {
	e, err := p.env.Nodes.Get(ctx, p.self.Key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := Decode(e)
	if err != nil || m.Identity == p.self.Identity {
		return e, nil
	}
	_, err = p.env.Alive.Get(ctx, p.self.Key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, p.taken(m)
}

// putOver replaces the entry was, or creates the entry if was is nil. It fails if that has changed.
func (p *Announcement) putOver(ctx context.Context, was jetstream.KeyValueEntry) (revision uint64, err error) {
	if was == nil {
		return p.env.Nodes.Create(ctx, p.self.Key(), p.self.Encode())
	}
	return p.env.Nodes.Update(ctx, p.self.Key(), p.self.Encode(), was.Revision())
}

// taken returns the ErrNameTaken for a node that has the name.
func (p *Announcement) taken(m Member) error {
	return fmt.Errorf("%w: %s belongs to %q, which has the node %s since %s, and this node's Config.Identity is %q", ErrNameTaken, m.Name, m.Identity, m.ID, m.Since.Format(time.RFC3339), p.self.Identity)
}

// nameOwner is the owner of a name. Its entry is next to those of the nodes, under the name alone.
type nameOwner struct {
	Identity string `json:"identity"`
}

// ownName ensures that the identity of this node owns the name. It comes after put, so that of two
// identities that join at the same time one sees the other.
func (p *Announcement) ownName(ctx context.Context) error {
	own, _ := json.Marshal(nameOwner{p.self.Identity}) // a string can be encoded
	for {
		_, err := p.env.Nodes.Create(ctx, p.self.Name, own)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return explained(p.env.NATS, p.before, "taking the name "+p.self.Name, err)
		}
		e, err := p.env.Nodes.Get(ctx, p.self.Name)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return explained(p.env.NATS, p.before, "reading the owner of the name", err)
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
			return explained(p.env.NATS, p.before, "taking the name "+p.self.Name, err)
		}
	}
}

// takeName takes the name from an owner that has no nodes. If one of its nodes has joined
// meanwhile, and has found that it owns the name, takeName restores the entry.
func (p *Announcement) takeName(ctx context.Context, has nameOwner, own []byte, e jetstream.KeyValueEntry) error {
	revision, err := p.env.Nodes.Update(ctx, p.self.Name, own, e.Revision())
	if err != nil {
		return err
	}
	if err := p.vacant(ctx, has); err != nil {
		p.env.Nodes.Update(ctx, p.self.Name, e.Value(), revision)
		return err
	}
	return nil
}

// vacant returns an error if nodes of the owner of the name are there.
func (p *Announcement) vacant(ctx context.Context, has nameOwner) error {
	there, err := kv.Snapshot(ctx, p.env.Nodes, p.self.Name+".*")
	if err != nil {
		return explained(p.env.NATS, p.before, "reading the nodes of the owner", err)
	}
	for _, e := range there {
		m, err := Decode(e)
		if err == nil && m.Identity == has.Identity {
			return p.taken(m)
		}
	}
	return nil
}

// Keep gives signs of life until ctx ends, and announces when the node drains. When another node
// has replaced this one, it returns [ErrReplaced].
func (p *Announcement) Keep(ctx context.Context, draining <-chan struct{}) error {
	for ctx.Err() == nil {
		again := p.env.Reconnected.Next()
		wait := time.NewTimer(p.env.Beat - rand.N(p.env.Beat/5)) // so that not all write at once
		var err error
		select {
		case <-wait.C:
			err = p.sign(ctx)
		case <-again:
			p.since = looksEach // other nodes may have taken it for lost
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
			p.env.Logger.Warn("cluster: this node could not say that it lives", "error", err)
		}
	}
	return nil
}

// looksEach is the number of signs of life between two checks of the entry, which another client
// may have overwritten.
const looksEach = 12

// sign gives a sign of life. If the last sign has expired, other nodes may have taken the node for
// lost, so its entry is checked as well.
func (p *Announcement) sign(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	if p.since++; p.since < looksEach {
		revision, err := p.env.Alive.Update(ctx, p.self.Key(), []byte(p.self.Instance), p.revision)
		if err == nil {
			p.revision = revision
			return nil
		}
	}
	err := p.renew(ctx)
	if err == nil || errors.Is(err, ErrReplaced) {
		return err
	}
	if err := p.env.Reopen(ctx); err != nil { // JetStream is unavailable, or a bucket is missing
		return err
	}
	return p.renew(ctx)
}

// renew restores the entry of the node if needed, unless another node has replaced it, and gives a
// sign of life. If it fails, the next sign retries.
func (p *Announcement) renew(ctx context.Context) error {
	p.since = looksEach
	e, err := p.env.Nodes.Get(ctx, p.self.Key())
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = p.put(ctx)
		// JetStream may have lost all data, and with it all watchers
		defer p.env.Reconnected.Signal()
	case err != nil:
	case bytes.Equal(e.Value(), p.self.Encode()):
		p.entry = e.Revision()
		p.revision, err = p.env.Alive.Put(ctx, p.self.Key(), []byte(p.self.Instance))
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

// replaced returns ErrReplaced if an entry belongs to a later node. An older entry may come from a
// server that lags behind.
func (p *Announcement) replaced(e jetstream.KeyValueEntry) error {
	m, err := Decode(e)
	if err != nil || m.Instance == p.self.Instance || e.Revision() < p.entry {
		return nil
	}
	return fmt.Errorf("%w: %s %s, since %s", ErrReplaced, m.Name, m.ID, m.Since.Format(time.RFC3339))
}

// Leave removes the entries, if they still belong to this node. After a failure they expire with
// the signs of life.
func (p *Announcement) Leave(ctx context.Context) {
	e, err := p.env.Nodes.Get(ctx, p.self.Key())
	if err != nil {
		return
	}
	if m, err := Decode(e); err != nil || m.Instance != p.self.Instance {
		return
	}
	// a Purge means that the node has left, a Delete that it is lost
	p.env.Nodes.Purge(ctx, p.self.Key(), jetstream.LastRevision(e.Revision()))
	p.env.Alive.Delete(ctx, p.self.Key(), jetstream.LastRevision(p.revision))
}
