package asterisque

// slots finds endpoints by the ids of their pipes, which grow: those that are open at a time are
// mostly neighbours. So an id has its place in a ring, next to that of the one before, and only an
// id whose place is still taken, by a pipe that has stayed open for long, goes into a map. Compared
// with a map for all, a burst of calls touches a fraction of the memory.
//
// The zero slots is empty. It is not safe for concurrent use.
type slots struct {
	ring  []slot // as many as a power of two, or none
	taken int    // of ring
	rest  map[uint64]endpoint
}

type slot struct {
	id uint64
	e  endpoint // nil: free
}

const (
	leastSlots = 4
	spareSlots = 256 // how many are kept when none is taken
)

// place returns where id belongs. There must be a ring.
func (s *slots) place(id uint64) *slot { return &s.ring[id>>1&uint64(len(s.ring)-1)] }

func (s *slots) len() int { return s.taken + len(s.rest) }

// get returns the endpoint of id, or nil.
func (s *slots) get(id uint64) endpoint {
	if len(s.ring) == 0 {
		return nil
	}
	if p := s.place(id); p.id == id && p.e != nil {
		return p.e
	}
	return s.rest[id]
}

// put adds e, whose id is new.
func (s *slots) put(id uint64, e endpoint) {
	for {
		if len(s.ring) > 0 {
			if p := s.place(id); p.e == nil {
				*p = slot{id, e}
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
func (s *slots) remove(id uint64) endpoint {
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

// resize gives the ring n places. Those that were apart in a smaller one are so in a larger one.
func (s *slots) resize(n int) {
	old := s.ring
	s.ring = make([]slot, n)
	for _, p := range old {
		if p.e != nil {
			*s.place(p.id) = p
		}
	}
}

// all calls f for each endpoint.
func (s *slots) all(f func(e endpoint)) {
	for _, p := range s.ring {
		if p.e != nil {
			f(p.e)
		}
	}
	for _, e := range s.rest {
		f(e)
	}
}
