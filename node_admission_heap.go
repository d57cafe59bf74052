package asterisque

import "container/heap"

// crowds are the hosts with places, as a heap: the first one has most, and of those with as many
// the oldest.
type crowds []*host

// fix puts h where it belongs after its places have changed.
func (c *crowds) fix(h *host) {
	switch {
	case h.index < 0 && h.open.Len() > 0:
		heap.Push(c, h)
	case h.index >= 0 && h.open.Len() == 0:
		heap.Remove(c, h.index)
	case h.index >= 0:
		heap.Fix(c, h.index)
	}
}

// Len implements heap.Interface.
func (c crowds) Len() int { return len(c) }

// Less implements heap.Interface.
func (c crowds) Less(i, j int) bool {
	a, b := &c[i].open, &c[j].open
	if a.Len() != b.Len() {
		return a.Len() > b.Len()
	}
	return a.Front().Value.(*entry).expires.Before(b.Front().Value.(*entry).expires)
}

// Swap implements heap.Interface.
func (c crowds) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].index, c[j].index = i, j
}

// Push implements heap.Interface.
func (c *crowds) Push(x any) {
	h := x.(*host)
	h.index = len(*c)
	*c = append(*c, h)
}

// Pop implements heap.Interface.
func (c *crowds) Pop() any {
	last := len(*c) - 1
	h := (*c)[last]
	(*c)[last], *c = nil, (*c)[:last]
	h.index = -1
	return h
}
