package classic

import (
	"sync"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// openLevel is a list, a struct or a map around the position of a weigher.
type openLevel struct {
	left      int // parts that come
	temporary int // bytes that are held until its end
}

var levelsPool = sync.Pool{New: func() any { return new([MaxDepth + 2]openLevel) }}

// loose weighs a value without a type that is nested depth deep, as loose of the decoder reads it.
func (w *weigher) loose(depth int) {
	all := levelsPool.Get().(*[MaxDepth + 2]openLevel)
	defer levelsPool.Put(all)
	for n := 0; !w.done(); {
		if depth+n > MaxDepth {
			w.data = nil
			return
		}
		l := w.part()
		if l.left > 0 {
			if n >= fewFrames {
				w.Add(frameSize)
				l.temporary += frameSize
			}
			all[n] = l
			n++
			continue
		}
		w.Drop(l.temporary)
		for n > 0 {
			if all[n-1].left--; all[n-1].left > 0 {
				break
			}
			n--
			w.Drop(all[n].temporary)
		}
		if n == 0 {
			return
		}
	}
}

// part weighs a value without its content.
func (w *weigher) part() (l openLevel) {
	tag := w.tag()
	if tag == nullTag {
		return l
	}
	p := w.dynamic(tag)
	switch tag {
	case stringTag, binaryTag:
		w.text(p, w.raw())
	case listTag:
		l.left = w.parts(w.count())
	case structTag:
		w.text(textPlan, w.raw())
		w.Add(sizing.String + sizeOfMore) // separate until the struct is complete
		l = openLevel{w.parts(w.fields()), sizing.String + sizeOfMore}
	case mapTag:
		n := w.count()
		if 2*n > len(w.data) {
			w.data = nil
			return l
		}
		w.Add(sizing.Alloc(n*entrySize) + sizeOfMore)
		l = openLevel{2 * n, sizeOfMore + w.places(n)}
	default:
		w.skip(tag)
	}
	return l
}

// parts weighs the place of n parts, and returns how many follow.
func (w *weigher) parts(n int) int {
	if n > len(w.data) {
		w.data = nil
		return 0
	}
	w.Add(sizing.Alloc(sizing.Times(n, sizing.Iface)))
	return n
}
