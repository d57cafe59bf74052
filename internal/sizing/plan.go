package sizing

import (
	"reflect"
	"sync"
)

// Kind is the way in which values of a type are decoded.
type Kind uint8

// The kinds of a Plan.
const (
	// its memory is fixed: a number, or a value that cannot be decoded
	Nothing Kind = iota
	Text         // a string
	Any          // an any, or a value of any kind
	Slice        // of Elem
	Array        // of Len times Elem
	Map          // of Key to Elem
	Struct       // of fields
	Pointer      // to Elem
	Own          // it decodes itself
	Time         // a time.Time
	Number       // a big.Int
)

// Plan describes how to weigh the values of one type. A plan of a recursive type refers to itself.
// It does not change once it is made.
type Plan struct {
	Kind      Kind
	Type      reflect.Type // nil without a type
	Quoted    bool         // a field encoded in a string
	Size      int          // of a value in its place
	Len       int
	Elem, Key *Plan
	Entry     int // bytes of a map entry in its place
	Aside     int // bytes of a map entry that are allocated separately

	Fields  map[string]*Plan // by name
	Numbers map[int64]*Plan  // by number
	Order   []*Plan
	Places  [][]int  // of Order, in the struct
	Labels  []string // of Order: the names, or the numbers in digits
	Names   [][]byte // of Fields, in their order
	Longest int      // of Names
	Extra   int      // bytes of embedded structs behind pointers
	Tagged  string   // the tag of a blank field
}

// NothingPlan is the plan of skipped values.
var NothingPlan = &Plan{}

// AnyPlan is the plan of values decoded without a type, and SlicePlan that of lists among them.
var (
	AnyPlan   = &Plan{Kind: Any, Size: Iface}
	SlicePlan = &Plan{Kind: Slice, Size: Header, Elem: AnyPlan}
)

// MapPlan returns the plan of a map decoded without a type, with the plan of its keys.
func MapPlan(key *Plan) *Plan {
	return &Plan{Kind: Map, Size: Word, Key: key, Elem: AnyPlan, Entry: key.Size + Iface}
}

// Rules describe the view of a codec on Go types.
type Rules struct {
	Kind  func(t reflect.Type) (k Kind, ok bool)           // the kind of t, if it is special
	Field func(f reflect.StructField) (name Name, ok bool) // ok: the field is decoded
	// key in the tag of a blank field
	Blank string
}

// Name is the name of a field in a codec.
type Name struct {
	Name     string
	Number   int64
	IsNumber bool
	Tagged   bool // the name comes from a tag
	Quoted   bool // the value is encoded in a string
	Embedded bool // its fields count as those of the enclosing struct
}

// Plans makes plans by the rules of a codec, and caches them.
type Plans struct {
	Rules Rules
	made  sync.Map // of *Plan, by reflect.Type

	mu sync.Mutex // guards the making of plans, which may need further plans
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
	for t, plan := range b.made { // they are complete now
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

// mostInline is the size of a key or an element, in bytes, beyond which a map entry contains only a
// pointer to it.
const mostInline = 128

// entry sets the size of an entry of the map type t.
func (p *Plan) entry(t reflect.Type) {
	for _, part := range []reflect.Type{t.Key(), t.Elem()} {
		size, align := int(part.Size()), part.Align()
		if size > mostInline {
			p.Aside += Alloc(size)
			size, align = Word, Word
		}
		p.Entry = (p.Entry+align-1)/align*align + size
	}
	p.Entry = (p.Entry + Word) / Word * Word // an element of size zero takes some bytes
}
