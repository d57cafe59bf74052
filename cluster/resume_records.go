package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// sessionRecords implements asterisque.Repository: it has the records of this node's sessions, and
// puts them where the other nodes of the name find them. There they run out unless they are put
// again, so those of a node that was killed go by themselves.
type sessionRecords struct {
	cluster *Cluster // fixed

	mu  sync.Mutex
	own map[asterisque.SessionID]asterisque.SessionRecord // of sessions of this node; guarded by mu

	// those of own that the bucket may not have as they are; guarded by mu
	missing map[asterisque.SessionID]struct{}
}

func newSessionRecords(c *Cluster) *sessionRecords {
	return &sessionRecords{
		cluster: c, own: make(map[asterisque.SessionID]asterisque.SessionRecord), missing: make(map[asterisque.SessionID]struct{}),
	}
}

// key returns that of a session in the bucket.
func (s *sessionRecords) key(id asterisque.SessionID) string {
	return s.cluster.cfg.Name + "." + id.String()
}

// Put implements asterisque.Repository. While NATS is away the record waits.
func (s *sessionRecords) Put(ctx context.Context, r asterisque.SessionRecord) error {
	if err := s.have(ctx, r); err != nil {
		return err
	}
	if !s.cluster.nc.IsConnected() {
		return nil
	}
	return s.put(ctx, r)
}

// have notes the record of a session, unless that has ended: then ctx has, and Delete may have come
// before.
func (s *sessionRecords) have(ctx context.Context, r asterisque.SessionRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.own[r.Session] = r
	s.missing[r.Session] = struct{}{}
	return nil
}

func (s *sessionRecords) put(ctx context.Context, r asterisque.SessionRecord) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	if _, err = s.cluster.buckets.sessions.Put(ctx, s.key(r.Session), value); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[r.Session] == r {
		delete(s.missing, r.Session)
	}
	return nil
}

// Get implements asterisque.Repository. While NATS is away it waits, until ctx ends: who has the
// session is known as soon as it is back.
func (s *sessionRecords) Get(ctx context.Context, id asterisque.SessionID) (r asterisque.SessionRecord, ok bool, err error) {
	s.mu.Lock()
	r, ok = s.own[id]
	s.mu.Unlock()
	if ok {
		return r, true, nil
	}
	for times := 0; ; times++ {
		r, ok, err = s.read(ctx, id)
		if err == nil || !wait.HoldOff(ctx, holdOffTime(times)) {
			return r, ok, err
		}
	}
}

// read asks the leader of the bucket, as claimStore.read does: one that lags behind may not have
// the record yet. Whether the session still waits is known to its node, by the clock there.
func (s *sessionRecords) read(ctx context.Context, id asterisque.SessionID) (r asterisque.SessionRecord, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	bucket := s.cluster.buckets.sessions.Bucket()
	m, err := s.cluster.claims.store.js.GetLastMsg("KV_"+bucket, "$KV."+bucket+"."+s.key(id), nats.Context(ctx))
	switch {
	case errors.Is(err, nats.ErrMsgNotFound):
		return r, false, nil
	case err != nil:
		return r, false, err
	}
	if len(m.Data) == 0 || json.Unmarshal(m.Data, &r) != nil || r.Session != id || !token.MatchString(r.Node) {
		return r, false, nil // deleted, or somebody else's
	}
	return r, true, nil
}

// Delete implements asterisque.Repository.
func (s *sessionRecords) Delete(ctx context.Context, id asterisque.SessionID) error {
	s.mu.Lock()
	delete(s.own, id)
	delete(s.missing, id)
	s.mu.Unlock()
	if !s.cluster.nc.IsConnected() {
		return nil // it runs out
	}
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	return s.cluster.buckets.sessions.Delete(ctx, s.key(id))
}

// keep puts all records again, before they run out, and those that are missing when NATS is back,
// where they may have been lost. It returns when ctx ends.
func (s *sessionRecords) keep(ctx context.Context) {
	every := time.NewTicker(s.cluster.cfg.times.record / 3)
	defer every.Stop()
	soon := time.NewTicker(time.Second)
	defer soon.Stop()
	for {
		select {
		case <-every.C:
			s.missAll()
		case <-s.cluster.again.Next():
			s.missAll()
		case <-soon.C:
		case <-ctx.Done():
			return
		}
		s.putMissing(ctx)
	}
}

// missAll lets all records be put again.
func (s *sessionRecords) missAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.own {
		s.missing[id] = struct{}{}
	}
}

// putMissing puts what is missing, until that fails.
func (s *sessionRecords) putMissing(ctx context.Context) {
	s.mu.Lock()
	list := slices.Collect(maps.Keys(s.missing))
	s.mu.Unlock()
	for _, id := range list {
		s.mu.Lock()
		r, ok := s.own[id]
		s.mu.Unlock()
		if ok && s.put(ctx, r) != nil {
			return // it is tried again in a second
		}
	}
}
