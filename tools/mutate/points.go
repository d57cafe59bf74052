package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// point is a place in a file, and its replacement.
type point struct {
	kind     string // the kind of change: "comparison", "dropped"
	function string
	pos, end token.Pos
	text     string // replaces the source from pos to end
}

// finder collects the points of one file.
type finder struct {
	src      string
	file     *token.File
	function string
	points   []point
}

// find returns all the points of a file, in the order of the syntax tree.
func find(name string, src []byte) ([]point, *token.File, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	f := &finder{src: string(src), file: fset.File(tree.FileStart)}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || forPeople[d.Name.Name] {
				continue
			}
			f.function = receiver(d) + d.Name.Name
			ast.Inspect(d.Body, f.visit)
		case *ast.GenDecl:
			if d.Tok == token.CONST || d.Tok == token.VAR {
				f.function = "declarations"
				ast.Inspect(d, f.visit)
			}
		}
	}
	return f.points, f.file, nil
}

// forPeople contains methods with results for human readers, and the calls that log.
var forPeople = map[string]bool{
	"String": true, "GoString": true, "Error": true, "LogValue": true, "LogAttrs": true,
	"Debug": true, "Info": true, "Warn": true, "log": true, "logf": true, "Printf": true,
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.Name + "."
		default:
			return ""
		}
	}
}

func (f *finder) add(kind string, pos, end token.Pos, text string) {
	f.points = append(f.points, point{kind, f.function, pos, end, text})
}

func (f *finder) source(n ast.Node) string {
	return f.src[f.file.Offset(n.Pos()):f.file.Offset(n.End())]
}

// visit adds the points of one node. It returns false for code with a result for human readers
// only.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		f.negate(n.Cond)
	case *ast.BinaryExpr:
		f.operator(n)
	case *ast.BasicLit:
		f.constant(n)
	case *ast.Ident:
		if to, ok := opposites[n.Name]; ok {
			f.add("constant", n.Pos(), n.End(), to)
		}
	case *ast.ArrayType:
		return false // another length is another type
	case *ast.CallExpr:
		return !forPeople[called(n)]
	case *ast.BlockStmt:
		f.drop(n.List)
	case *ast.CaseClause:
		f.drop(n.Body)
	case *ast.CommClause:
		f.drop(n.Body)
	}
	return true
}

var opposites = map[string]string{"true": "false", "false": "true"}

// called returns the last name in the function of a call.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

func (f *finder) negate(cond ast.Expr) {
	if cond == nil {
		return
	}
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return // operator does the same
	}
	f.add("condition", cond.Pos(), cond.End(), "!("+f.source(cond)+")")
}

var others = map[token.Token]struct {
	kind string
	to   token.Token
}{
	token.LSS: {"comparison", token.LEQ}, token.LEQ: {"comparison", token.LSS},
	token.GTR: {"comparison", token.GEQ}, token.GEQ: {"comparison", token.GTR},
	token.EQL: {"condition", token.NEQ}, token.NEQ: {"condition", token.EQL},
	token.LAND: {"logic", token.LOR}, token.LOR: {"logic", token.LAND},
	token.ADD: {"arithmetic", token.SUB}, token.SUB: {"arithmetic", token.ADD},
	token.MUL: {"arithmetic", token.QUO}, token.QUO: {"arithmetic", token.MUL},
	token.AND: {"arithmetic", token.OR}, token.OR: {"arithmetic", token.AND},
	token.SHL: {"arithmetic", token.SHR}, token.SHR: {"arithmetic", token.SHL},
}

func (f *finder) operator(b *ast.BinaryExpr) {
	if o, ok := others[b.Op]; ok {
		f.add(o.kind, b.OpPos, b.OpPos+token.Pos(len(b.Op.String())), o.to.String())
	}
}

// constant makes a whole number one larger.
func (f *finder) constant(l *ast.BasicLit) {
	if n, err := strconv.ParseInt(l.Value, 0, 64); l.Kind == token.INT && err == nil {
		f.add("constant", l.Pos(), l.End(), strconv.FormatInt(n+1, 10))
	}
}

// drop removes each statement that may be removed without a compile error, and each early return.
func (f *finder) drop(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); !ok || forPeople[called(c)] || called(c) == "panic" {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || strings.HasPrefix(f.source(s), "_ =") {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.ReturnStmt, *ast.BranchStmt:
		default:
			continue
		}
		f.add("dropped", s.Pos(), s.End(), "{}")
	}
}
