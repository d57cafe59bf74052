package sizing

import (
	"reflect"
	"sync"
)

// Reach determines whether values of a type can contain a value with a plan that Want selects. Its
// fields do not change.
type Reach struct {
	Plans *Plans
	Want  func(*Plan) bool

	known sync.Map // of bool, by reflect.Type
}

// From reports whether Want selects the plan of t, or a plan that it leads to.
func (r *Reach) From(t reflect.Type) bool {
	if reaches, ok := r.known.Load(t); ok {
		return reaches.(bool)
	}
	reaches := r.from(r.Plans.Of(t), make(map[*Plan]bool))
	r.known.Store(t, reaches)
	return reaches
}

// from is From for a plan. seen contains the plans visited before.
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
