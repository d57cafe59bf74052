// Package ranking provides the first of many elements with ranks that may change at any time. It is
// a heap of elements that know their places.
package ranking

// Ranking holds elements, each at most once. It is not safe for concurrent use.
type Ranking[T any] struct {
	ahead func(a, b *T) bool // reports whether a is before b; fixed, as place
	place func(e *T) *Place
	all   []*T // a heap: no element is before the one at half its place
}

// Place is the position of an element in a ranking. The zero Place belongs to an element that is in
// none.
type Place int

// New returns an empty ranking. ahead reports whether a is before b. place returns the Place of an
// element in this ranking, which only the ranking changes.
func New[T any](ahead func(a, b *T) bool, place func(e *T) *Place) Ranking[T] {
	return Ranking[T]{ahead: ahead, place: place}
}

// Len returns the number of elements in r.
func (r *Ranking[T]) Len() int { return len(r.all) }

// First returns the first element. The ranking must not be empty.
func (r *Ranking[T]) First() *T { return r.all[0] }

// Put adds e if e is not in r. It also has to be called after each change of the rank of e.
func (r *Ranking[T]) Put(e *T) {
	if *r.place(e) == 0 {
		r.all = append(r.all, e)
		*r.place(e) = Place(len(r.all))
	}
	r.settle(e)
}

// Remove removes e from r, if it is there.
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

// settle moves e to its position.
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
