package flowmodel

// random is a small fast generator (splitmix64): one seed, one schedule.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n).
func (r *random) below(n int) int {
	return int(uint64(uint32(r.next())) * uint64(n) >> 32)
}

// within returns a number in [low, high].
func (r *random) within(low, high int) int {
	if high <= low {
		return low
	}
	return low + r.below(high-low+1)
}

// oneIn is true once in n times.
func (r *random) oneIn(n int) bool { return r.below(n) == 0 }

// skewed returns a number in [0, high]. Small numbers are far more likely than large ones.
func (r *random) skewed(high int) int {
	if r.oneIn(8) {
		return high - r.below(1+high/16)
	}
	for high > 64 && !r.oneIn(3) {
		high /= 4
	}
	return r.below(1 + high)
}
