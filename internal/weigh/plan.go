package weigh

import (
	"reflect"
	"sync"
)

// Kind says what becomes of a value that is decoded as some type.
type Kind uint8

// The kinds of a Plan.
const (
	// it holds what it is and no more, whatever comes: a number, or what cannot be decoded
	Nothing Kind = iota
	Text         // a string
	Any          // an any, or what is as free
	Slice        // of Elem
	Array        // of Len times Elem
	Map          // of Key to Elem
	Struct       // of fields
	Pointer      // to Elem
	Own          // it decodes itself
	Time         // a time.Time
	Number       // a big.Int
)

// Plan is how values of one type are weighed. It refers to itself where its type does. It does not
// change once it is made.
type Plan struct {
	Kind      Kind
	Type      reflect.Type // nil of what has none
	Quoted    bool         // a field that is in a string
	Size      int          // of a value, in the place where it is
	Len       int
	Elem, Key *Plan
	Entry     int // bytes of an entry of a map, in its place
	Aside     int // bytes of an entry that are allocated apart

	Fields  map[string]*Plan // by name
	Numbers map[int64]*Plan  // by number
	Order   []*Plan
	Places  [][]int  // of Order, in the struct
	Labels  []string // of Order: the names, and the numbers in digits
	Names   [][]byte // of Fields, in their order
	Longest int      // of Names
	Extra   int      // bytes of embedded structs that are pointed to
	Tagged  string   // the tag of a blank field
}

// NothingPlan is for what is skipped.
var NothingPlan = &Plan{}

// AnyPlan is for what is decoded without a type, and the two others for what that may become.
var (
	AnyPlan   = &Plan{Kind: Any, Size: Iface}
	SlicePlan = &Plan{Kind: Slice, Size: Header, Elem: AnyPlan}
)

// MapPlan returns the plan of a map that is made without a type, whose keys have a plan.
func MapPlan(key *Plan) *Plan {
	return &Plan{Kind: Map, Size: Word, Key: key, Elem: AnyPlan, Entry: key.Size + Iface}
}

// Rules are how a codec reads Go types.
type Rules struct {
	Kind  func(t reflect.Type) (k Kind, ok bool)           // what t is, if not what it looks like
	Field func(f reflect.StructField) (name Name, ok bool) // ok: it is decoded
	// key of the tag that a blank field may have
	Blank string
}

// Name is how a codec names a field.
type Name struct {
	Name     string
	Number   int64
	IsNumber bool
	Tagged   bool // it is named by a tag
	Quoted   bool // a string holds it
	Embedded bool // its fields count as those of the struct that it is in
}

// Plans makes plans by the rules of a codec, and keeps them.
type Plans struct {
	Rules Rules
	made  sync.Map // of *Plan, by reflect.Type

	mu sync.Mutex // guards the making of plans, of which one may need others
}

// Of returns the plan of t.
func (p *Plans) Of(t reflect.Type) *Plan {
	if plan, ok := p.made.Load(t); ok {
		return plan.(*Plan)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := builder{p, make(map[reflect.Type]*Plan)}
	plan := b.plan(t)
	for t, plan := range b.made { // now they are whole
		p.made.Store(t, plan)
	}
	return plan
}

// builder makes plans that refer to each other.
type builder struct {
	*Plans
	made map[reflect.Type]*Plan
}

func (b *builder) plan(t reflect.Type) *Plan {
	if p, ok := b.Plans.made.Load(t); ok {
		return p.(*Plan)
	}
	if p := b.made[t]; p != nil {
		return p
	}
	p := &Plan{Type: t, Size: int(t.Size())}
	b.made[t] = p
	if k, ok := b.Rules.Kind(t); ok {
		p.Kind = k
		return p
	}
	switch t.Kind() {
	case reflect.String:
		p.Kind = Text
	case reflect.Interface:
		if t.NumMethod() == 0 {
			p.Kind = Any
		}
	case reflect.Slice:
		p.Kind, p.Elem = Slice, b.plan(t.Elem())
	case reflect.Array:
		p.Kind, p.Len, p.Elem = Array, t.Len(), b.plan(t.Elem())
	case reflect.Pointer:
		p.Kind, p.Elem = Pointer, b.plan(t.Elem())
	case reflect.Map:
		p.Kind, p.Key, p.Elem = Map, b.plan(t.Key()), b.plan(t.Elem())
		p.entry(t)
	case reflect.Struct:
		p.Kind = Struct
		b.fields(t, p)
	}
	return p
}

// mostInline is the size of a key or an element, in bytes, beyond which an entry of a map only
// points to it.
const mostInline = 128

// entry fills in what an entry of the map type t takes.
func (p *Plan) entry(t reflect.Type) {
	for _, part := range []reflect.Type{t.Key(), t.Elem()} {
		size, align := int(part.Size()), part.Align()
		if size > mostInline {
			p.Aside += Alloc(size)
			size, align = Word, Word
		}
		p.Entry = (p.Entry+align-1)/align*align + size
	}
	p.Entry = (p.Entry + Word) / Word * Word // an element of no size takes some
}
