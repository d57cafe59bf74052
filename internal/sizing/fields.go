package sizing

import (
	"bytes"
	"reflect"
	"slices"
)

// structField is a field that a codec may decode.
type structField struct {
	Name
	t     reflect.Type
	index []int
	twice bool // two fields at this depth have the same name, and neither is decoded
}

// fieldKey is the identity of a field.
type fieldKey struct {
	name   string
	number bool
}

// fields fills in the fields of the struct type t. Among fields with the same name the least deep
// one counts, and among several of these the one named by a tag.
func (b *builder) fields(t reflect.Type, p *Plan) {
	found := make(map[fieldKey]*structField)
	seen := make(map[reflect.Type]bool)
	for level := []structField{{t: t}}; len(level) > 0; {
		here := make(map[fieldKey]*structField)
		var next []structField
		for _, in := range level {
			if !seen[in.t] {
				seen[in.t] = true
				next = append(next, b.level(in, here, p)...)
			}
		}
		for k, f := range here {
			if found[k] == nil {
				found[k] = f
			}
		}
		level = next
	}
	b.set(found, p)
}

// level adds the fields of one struct to here, and returns its embedded structs.
func (b *builder) level(in structField, here map[fieldKey]*structField, p *Plan) (embedded []structField) {
	for i := range in.t.NumField() {
		sf := in.t.Field(i)
		if sf.Name == "_" && b.Rules.Blank != "" && len(in.index) == 0 {
			p.Tagged = sf.Tag.Get(b.Rules.Blank)
		}
		name, ok := b.Rules.Field(sf)
		if !ok {
			continue
		}
		f := &structField{Name: name, t: sf.Type, index: append(slices.Clone(in.index), i)}
		if name.Embedded {
			for f.t.Kind() == reflect.Pointer {
				f.t = f.t.Elem()
				p.Extra += Alloc(int(f.t.Size()))
			}
			embedded = append(embedded, *f)
			continue
		}
		k := fieldKey{name.Name, name.IsNumber}
		switch other := here[k]; {
		case other == nil || name.Tagged && !other.Tagged:
			here[k] = f
		case name.Tagged == other.Tagged:
			other.twice = true
		}
	}
	return embedded
}

// set makes the plans of the fields found.
func (b *builder) set(found map[fieldKey]*structField, p *Plan) {
	var fields []*structField
	for _, f := range found {
		if !f.twice {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b *structField) int { return slices.Compare(a.index, b.index) })
	p.Fields, p.Numbers = make(map[string]*Plan), make(map[int64]*Plan)
	for _, f := range fields {
		plan := b.plan(f.t)
		if f.Quoted { // only for plain types, whose plans are complete
			own := *plan
			own.Quoted = true
			plan = &own
		}
		p.Order, p.Places, p.Labels = append(p.Order, plan), append(p.Places, f.index), append(p.Labels, f.Name.Name)
		if f.IsNumber {
			p.Numbers[f.Number] = plan
			continue
		}
		p.Fields[f.Name.Name] = plan
		p.Names = append(p.Names, []byte(f.Name.Name))
		p.Longest = max(p.Longest, len(f.Name.Name))
	}
}

// Field returns the plan of the field with the given name, or else of one that differs only in
// case.
func (p *Plan) Field(name []byte) *Plan {
	if f := p.Fields[string(name)]; f != nil {
		return f
	}
	for _, n := range p.Names {
		if bytes.EqualFold(n, name) {
			return p.Fields[string(n)]
		}
	}
	return nil
}
