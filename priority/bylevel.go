package priority

// few is the number of unused levels for which a byLevel may keep memory.
const few = 16

// byLevel holds a value for each level of a set, and uses memory for these levels only.
type byLevel[V any] struct {
	used   set
	values []V // of the used levels, the lowest first
}

// at returns the value of a used level. The pointer is valid until a level is added or removed.
func (b *byLevel[V]) at(l int) *V { return &b.values[b.used.below(l)] }

// highest returns the highest used level below the level under, or -1.
func (b *byLevel[V]) highest(under int) int { return b.used.highest(under) }

// lowest returns the lowest used level, or -1.
func (b *byLevel[V]) lowest() int { return b.used.lowest() }

// add returns the value of a level, which is the zero V if the level was not used.
func (b *byLevel[V]) add(l int) *V {
	i := b.used.below(l)
	if !b.used.has(l) {
		var zero V
		b.values = append(b.values, zero)
		copy(b.values[i+1:], b.values[i:])
		b.values[i] = zero
		b.used.add(l)
	}
	return &b.values[i]
}

// remove drops the value of a used level.
func (b *byLevel[V]) remove(l int) {
	i := b.used.below(l)
	n := copy(b.values[i:], b.values[i+1:]) + i
	clear(b.values[n:])
	b.values = b.values[:n]
	b.used.remove(l)
	if cap(b.values) > 4*n+few {
		b.values = append(make([]V, 0, 2*n), b.values...)
	}
}
