package path

// rates are the largest rates of the latest round trips, in bytes a second.
type rates struct {
	rounds [10]float64
	round  int
	next   uint64 // with the mark behind so many bytes, a round trip ends
}

// most returns the largest of them.
func (r *rates) most() (rate float64) {
	for _, n := range r.rounds {
		rate = max(rate, n)
	}
	return rate
}

// add takes the rate that k has told, and reports whether k ends a round trip.
func (r *rates) add(rate float64, k *mark) (over bool) {
	if over = k.read >= r.next; over {
		r.next = k.written
		r.round = (r.round + 1) % len(r.rounds)
		r.rounds[r.round] = 0
	}
	r.rounds[r.round] = max(r.rounds[r.round], rate)
	return over
}

// reset forgets all rates but this one.
func (r *rates) reset(rate float64) {
	r.rounds = [len(r.rounds)]float64{}
	r.rounds[r.round] = rate
}
