package relay

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// records implements asterisque.Repository. It stores the records of this node's sessions in
// a bucket for the other nodes of the name. Records expire unless they are renewed, so those of a
// killed node disappear.
type records struct {
	name  string        // of the nodes; fixed, as life is
	life  time.Duration // of an entry
	links Links         // set by connect, and fixed then, as store is
	store *kv.Store

	mu  sync.Mutex
	own map[asterisque.SessionID]asterisque.SessionRecord // sessions of this node; guarded by mu

	// records of own that the bucket may lack; guarded by mu
	missing map[asterisque.SessionID]struct{}
}

func newRecords(cfg Config) *records {
	return &records{
		name: cfg.Name, life: cfg.RecordLife, own: make(map[asterisque.SessionID]asterisque.SessionRecord), missing: make(map[asterisque.SessionID]struct{}),
	}
}

func (s *records) connect(l Links) (err error) {
	s.links = l
	s.store, err = kv.NewStore(l.NATS, l.Records)
	return err
}

// key returns the bucket key of a session.
func (s *records) key(id asterisque.SessionID) string {
	return s.name + "." + id.String()
}

// Put implements asterisque.Repository. During an outage of NATS the record is written later.
func (s *records) Put(ctx context.Context, r asterisque.SessionRecord) error {
	if err := s.have(ctx, r); err != nil {
		return err
	}
	if !s.links.NATS.IsConnected() {
		return nil
	}
	return s.put(ctx, r)
}

// have stores the record of a session, unless the session has ended: then ctx has ended, and Delete
// may have been called before.
func (s *records) have(ctx context.Context, r asterisque.SessionRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.own[r.Session] = r
	s.missing[r.Session] = struct{}{}
	return nil
}

func (s *records) put(ctx context.Context, r asterisque.SessionRecord) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	if _, err = s.links.Records.Put(ctx, s.key(r.Session), value); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[r.Session] == r {
		delete(s.missing, r.Session)
	}
	return nil
}

// Get implements asterisque.Repository. During an outage of NATS it blocks, until ctx ends: the
// node of the session becomes known when NATS is back.
func (s *records) Get(ctx context.Context, id asterisque.SessionID) (r asterisque.SessionRecord, ok bool, err error) {
	s.mu.Lock()
	r, ok = s.own[id]
	s.mu.Unlock()
	if ok {
		return r, true, nil
	}
	for times := 0; ; times++ {
		r, ok, err = s.read(ctx, id)
		if err == nil || !wait.HoldOff(ctx, kv.Backoff(times)) {
			return r, ok, err
		}
	}
}

// read asks the leader of the bucket: a server that lags behind may lack the record. Only the node
// of the session knows by its clock whether the session still waits.
func (s *records) read(ctx context.Context, id asterisque.SessionID) (r asterisque.SessionRecord, ok bool, err error) {
	e, err := s.store.Read(ctx, s.key(id))
	if err != nil || !e.Exists {
		return r, false, err
	}
	if json.Unmarshal(e.Value, &r) != nil || r.Session != id || !kv.IsToken(r.Node) {
		return r, false, nil // not an entry of this package
	}
	return r, true, nil
}

// Delete implements asterisque.Repository.
func (s *records) Delete(ctx context.Context, id asterisque.SessionID) error {
	s.mu.Lock()
	delete(s.own, id)
	delete(s.missing, id)
	s.mu.Unlock()
	if !s.links.NATS.IsConnected() {
		return nil // it expires
	}
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	return s.links.Records.Delete(ctx, s.key(id))
}

// keep renews all records before they expire, and writes missing ones when NATS is back, which may
// have lost them. It returns when ctx ends.
func (s *records) keep(ctx context.Context) {
	every := time.NewTicker(s.life / 3)
	defer every.Stop()
	soon := time.NewTicker(time.Second)
	defer soon.Stop()
	for {
		select {
		case <-every.C:
			s.missAll()
		case <-s.links.Reconnected.Next():
			s.missAll()
		case <-soon.C:
		case <-ctx.Done():
			return
		}
		s.putMissing(ctx)
	}
}

// missAll marks all records to be written again.
func (s *records) missAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.own {
		s.missing[id] = struct{}{}
	}
}

// putMissing writes the missing records, until a write fails.
func (s *records) putMissing(ctx context.Context) {
	s.mu.Lock()
	list := slices.Collect(maps.Keys(s.missing))
	s.mu.Unlock()
	for _, id := range list {
		s.mu.Lock()
		r, ok := s.own[id]
		s.mu.Unlock()
		if ok && s.put(ctx, r) != nil {
			return // retried in a second
		}
	}
}
