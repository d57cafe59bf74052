package main

import (
	"cmp"
	"go/types"
	"slices"
)

// use means that the file from uses a declaration of the file to.
type use struct{ from, to string }

// uses returns the uses between the files of p.
func (p *loaded) uses() map[use]bool {
	edges := make(map[use]bool)
	for id, obj := range p.info.Uses {
		if obj.Pkg() != p.types || !obj.Pos().IsValid() || !shared(obj) {
			continue
		}
		if from, to := p.file(id.Pos()), p.file(obj.Pos()); from != to {
			edges[use{from, to}] = true
		}
	}
	return edges
}

// shared reports whether other files can use obj: a package-level name, a method or a field.
func shared(obj types.Object) bool {
	switch o := obj.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == obj.Pkg().Scope()
	case *types.Func:
		return true
	}
	return obj.Parent() == obj.Pkg().Scope()
}

// mutual returns the pairs of files that use each other, each once, sorted.
func mutual(edges map[use]bool) (pairs []use) {
	for e := range edges {
		if e.from < e.to && edges[use{e.to, e.from}] {
			pairs = append(pairs, e)
		}
	}
	slices.SortFunc(pairs, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return pairs
}

// largestCycle returns the files of the largest strongly connected component of more than one file,
// sorted.
func largestCycle(edges map[use]bool) (largest []string) {
	w := walk{
		next:  make(map[string][]string),
		index: make(map[string]int),
		low:   make(map[string]int),
		on:    make(map[string]bool),
	}
	for e := range edges {
		w.next[e.from] = append(w.next[e.from], e.to)
	}
	for v := range w.next {
		if w.index[v] == 0 {
			w.visit(v)
		}
	}
	slices.Sort(w.largest)
	return w.largest
}

// walk is the state of Tarjan's algorithm.
type walk struct {
	next       map[string][]string
	index, low map[string]int
	on         map[string]bool // the stack
	stack      []string
	largest    []string
}

func (w *walk) visit(v string) {
	w.index[v] = len(w.index) + 1
	w.low[v] = w.index[v]
	w.stack, w.on[v] = append(w.stack, v), true
	for _, to := range w.next[v] {
		if w.index[to] == 0 {
			w.visit(to)
			w.low[v] = min(w.low[v], w.low[to])
		} else if w.on[to] {
			w.low[v] = min(w.low[v], w.index[to])
		}
	}
	if w.low[v] == w.index[v] {
		w.cut(v)
	}
}

// cut removes the component that begins with v from the stack.
func (w *walk) cut(v string) {
	at := slices.Index(w.stack, v)
	component := slices.Clone(w.stack[at:])
	w.stack = w.stack[:at]
	for _, x := range component {
		w.on[x] = false
	}
	if len(component) > max(1, len(w.largest)) {
		w.largest = component
	}
}
