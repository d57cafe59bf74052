package main

import (
	"go/ast"
	"slices"
	"strings"
)

// methods returns the methods of a type of p, each as file:method, sorted. home are those in files
// with the name of the type, session*.go for Session, and away all others.
func (p *loaded) methods(typ string) (home, away []string) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || receiver(fn) != typ {
				continue
			}
			file := p.file(fn.Pos())
			if strings.HasPrefix(file, strings.ToLower(typ)) {
				home = append(home, file+":"+fn.Name.Name)
			} else {
				away = append(away, file+":"+fn.Name.Name)
			}
		}
	}
	slices.Sort(home)
	slices.Sort(away)
	return home, away
}

// receiver returns the receiver type of fn, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// fields returns the number of fields of a struct type of p, including those of unnamed structs
// within.
func (p *loaded) fields(typ string) (n int) {
	for _, f := range p.files {
		ast.Inspect(f, func(at ast.Node) bool {
			if t, ok := at.(*ast.TypeSpec); ok && t.Name.Name == typ {
				n += fieldsOf(t.Type)
				return false
			}
			return true
		})
	}
	return n
}

func fieldsOf(t ast.Expr) (n int) {
	s, ok := t.(*ast.StructType)
	if !ok {
		return 0
	}
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names)) * max(1, fieldsOf(f.Type))
	}
	return n
}
