// Package ranking has the first of many at hand, whose rank may change at any time. It is a heap
// whose elements know their place in it.
package ranking

// Ranking has elements in it, each at most once. It does not lock itself.
type Ranking[T any] struct {
	ahead func(a, b *T) bool // a is before b; fixed, as place
	place func(e *T) *Place
	all   []*T // a heap: each is behind that at half of its place
}

// Place is where an element is in a ranking. The zero Place is that of one which is in none.
type Place int

// New returns a ranking without elements. ahead says which of two is before the other, and place
// where an element has its place in this ranking, which nobody else changes.
func New[T any](ahead func(a, b *T) bool, place func(e *T) *Place) Ranking[T] {
	return Ranking[T]{ahead: ahead, place: place}
}

// Len returns how many elements are in r.
func (r *Ranking[T]) Len() int { return len(r.all) }

// First returns the element that no other one is before. There has to be one.
func (r *Ranking[T]) First() *T { return r.all[0] }

// Put adds e if it is not in r. Otherwise it is called whenever the rank of e has changed.
func (r *Ranking[T]) Put(e *T) {
	if *r.place(e) == 0 {
		r.all = append(r.all, e)
		*r.place(e) = Place(len(r.all))
	}
	r.settle(e)
}

// Remove takes e out of r, if it is there.
func (r *Ranking[T]) Remove(e *T) {
	at := *r.place(e)
	if at == 0 {
		return
	}
	n := Place(len(r.all))
	last := r.all[n-1]
	r.swap(at, n)
	r.all[n-1], r.all = nil, r.all[:n-1]
	*r.place(e) = 0
	if last != e {
		r.settle(last)
	}
}

// settle lets e move to where it belongs.
func (r *Ranking[T]) settle(e *T) {
	at := *r.place(e)
	for at > 1 && r.before(at, at/2) {
		r.swap(at, at/2)
		at /= 2
	}
	for n := Place(len(r.all)); 2*at <= n; {
		next := 2 * at
		if next < n && r.before(next+1, next) {
			next++
		}
		if !r.before(next, at) {
			return
		}
		r.swap(at, next)
		at = next
	}
}

func (r *Ranking[T]) before(i, j Place) bool { return r.ahead(r.all[i-1], r.all[j-1]) }

func (r *Ranking[T]) swap(i, j Place) {
	r.all[i-1], r.all[j-1] = r.all[j-1], r.all[i-1]
	*r.place(r.all[i-1]), *r.place(r.all[j-1]) = i, j
}
