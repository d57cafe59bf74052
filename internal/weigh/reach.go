package weigh

import (
	"reflect"
	"sync"
)

// Reach knows whether values of a type can hold what a plan is for that Want wants. Its fields do
// not change.
type Reach struct {
	Plans *Plans
	Want  func(*Plan) bool

	known sync.Map // of bool, by reflect.Type
}

// From reports whether the plan of t is wanted, or leads to one that is.
func (r *Reach) From(t reflect.Type) bool {
	if reaches, ok := r.known.Load(t); ok {
		return reaches.(bool)
	}
	reaches := r.from(r.Plans.Of(t), make(map[*Plan]bool))
	r.known.Store(t, reaches)
	return reaches
}

// from is From of a plan. seen has those that were looked at.
func (r *Reach) from(p *Plan, seen map[*Plan]bool) bool {
	if p == nil || seen[p] {
		return false
	}
	seen[p] = true
	if r.Want(p) || r.from(p.Key, seen) || r.from(p.Elem, seen) {
		return true
	}
	for _, f := range p.Order {
		if r.from(f, seen) {
			return true
		}
	}
	return false
}
