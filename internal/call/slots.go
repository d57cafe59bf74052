package call

// slotRing finds endpoints by the ids of their pipes, which increase: pipes that are open at the
// same time are mostly neighbours. An id therefore has its place in a ring, next to that of the
// previous one. An id is stored in a map only if its place is still taken, by a long-lived pipe.
// Compared with a map for all ids, a burst of calls touches a fraction of the memory.
//
// The zero slots is empty. It is not safe for concurrent use.
type slotRing struct {
	ring  []pipeSlot // length is a power of two, or zero
	taken int        // of ring
	rest  map[uint64]endpoint
}

type pipeSlot struct {
	id uint64
	e  endpoint // nil: free
}

const (
	leastSlots = 4
	spareSlots = 256 // number that is kept when none is taken
)

// place returns the place of id. There must be a ring.
func (s *slotRing) place(id uint64) *pipeSlot { return &s.ring[id>>1&uint64(len(s.ring)-1)] }

func (s *slotRing) len() int { return s.taken + len(s.rest) }

// get returns the endpoint of id, or nil.
func (s *slotRing) get(id uint64) endpoint {
	if len(s.ring) == 0 {
		return nil
	}
	if p := s.place(id); p.id == id && p.e != nil {
		return p.e
	}
	return s.rest[id]
}

// put adds e under a new id.
func (s *slotRing) put(id uint64, e endpoint) {
	for {
		if len(s.ring) > 0 {
			if p := s.place(id); p.e == nil {
				*p = pipeSlot{id, e}
				s.taken++
				return
			}
		}
		if s.taken < len(s.ring)/2 { // a larger ring would be emptier still
			break
		}
		s.resize(max(leastSlots, 2*len(s.ring)))
	}
	if s.rest == nil {
		s.rest = make(map[uint64]endpoint)
	}
	s.rest[id] = e
}

// remove removes the endpoint of id and returns it, or nil.
func (s *slotRing) remove(id uint64) endpoint {
	if len(s.ring) == 0 {
		return nil
	}
	p := s.place(id)
	if p.id != id || p.e == nil {
		e := s.rest[id]
		delete(s.rest, id)
		return e
	}
	e := p.e
	p.e = nil
	if s.taken--; s.taken == 0 && len(s.ring) > spareSlots {
		s.resize(len(s.ring) / 2)
	}
	return e
}

// resize gives the ring n places. Ids with different places in a smaller ring have different places
// in a larger one.
func (s *slotRing) resize(n int) {
	old := s.ring
	s.ring = make([]pipeSlot, n)
	for _, p := range old {
		if p.e != nil {
			*s.place(p.id) = p
		}
	}
}

// all calls f for each endpoint.
func (s *slotRing) all(f func(e endpoint)) {
	for _, p := range s.ring {
		if p.e != nil {
			f(p.e)
		}
	}
	for _, e := range s.rest {
		f(e)
	}
}
