package path

// rates are the largest rates of the latest round trips, in bytes a second.
type rates struct {
	rounds [10]float64
	round  int
	next   uint64 // a round trip ends with the mark after this number of bytes
}

// most returns the largest rate.
func (r *rates) most() (rate float64) {
	for _, n := range r.rounds {
		rate = max(rate, n)
	}
	return rate
}

// add adds the rate measured by k, and reports whether k ends a round trip.
func (r *rates) add(rate float64, k *mark) (over bool) {
	if over = k.read >= r.next; over {
		r.next = k.written
		r.round = (r.round + 1) % len(r.rounds)
		r.rounds[r.round] = 0
	}
	r.rounds[r.round] = max(r.rounds[r.round], rate)
	return over
}

// reset drops all rates but the given one.
func (r *rates) reset(rate float64) {
	r.rounds = [len(r.rounds)]float64{}
	r.rounds[r.round] = rate
}
