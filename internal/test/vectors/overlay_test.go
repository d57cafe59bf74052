package vectors

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// which is the environment variable with the number of the active mutant.
const which = "ASTERISQUE_MUTANT"

// decision is added to each package with mutants.
const decision = `package %s

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("` + which + `"))
`

// overlay writes the file for -overlay with which all mutants are compiled at once. It contains
// each function once per mutant, and in its original form, which begins with the choice.
func overlay(t *testing.T, mutants []mutant) (file string) {
	dir := t.TempDir()
	root, err := os.Getwd()
	require.NoError(t, err)
	replace := map[string]string{}
	put := func(name, text string) {
		to := filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), path.Base(name)))
		require.NoError(t, os.WriteFile(to, []byte(text), 0o600))
		replace[filepath.Join(root, filepath.FromSlash(name))] = to
	}
	byFile := map[string][]int{}
	for i, m := range mutants {
		byFile[m.file] = append(byFile[m.file], i)
	}
	for name, numbers := range byFile {
		put(name, withMutants(t, read(t, name), mutants, numbers))
		put(path.Join(path.Dir(name), "zz_mutant.go"), fmt.Sprintf(decision, path.Base(path.Dir(name))))
	}
	put("internal/cborhead/zz_lenient.go", read(t, "internal/test/vectors/testdata/lenient.go"))
	put("internal/cborhead/zz_mutant.go", fmt.Sprintf(decision, "cborhead"))
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	return file
}

func read(t *testing.T, name string) string {
	data, err := os.ReadFile(filepath.FromSlash(name))
	require.NoError(t, err)
	return string(data)
}

// withMutants returns the text of a file together with the mutants of the given numbers.
func withMutants(t *testing.T, text string, mutants []mutant, numbers []int) string {
	was := functions(t, text)
	choices := make([]strings.Builder, len(was)) // by function
	var copies strings.Builder
	for _, i := range numbers {
		m := mutants[i]
		is := functions(t, strings.Replace(text, m.old, m.new, 1))
		require.Len(t, is, len(was), m.name)
		at := -1
		for j, f := range is {
			if f.text != was[j].text {
				require.Negative(t, at, "%s: it is in one function", m.name)
				at = j
			}
		}
		require.GreaterOrEqual(t, at, 0, "%s: it is in a function", m.name)
		name := fmt.Sprintf("%sMutant%d", is[at].name, i+1)
		fmt.Fprintf(&copies, "\n%s%s%s\n", is[at].text[:is[at].nameAt], name, is[at].text[is[at].nameAt+len(is[at].name):])
		fmt.Fprintf(&choices[at], "\tif mutant == %d {\n\t\t%s\n\t}\n", i+1, was[at].call(name))
	}
	for j := len(was) - 1; j >= 0; j-- {
		text = text[:was[j].body] + "\n" + choices[j].String() + text[was[j].body:]
	}
	return text + copies.String()
}

// function is a function of a file.
type function struct {
	name, text string
	nameAt     int // in text
	body       int // in the file: after the brace
	call       func(name string) string
}

func functions(t *testing.T, text string) (list []function) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	require.NoError(t, err, text)
	at := func(p token.Pos) int { return set.Position(p).Offset }
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		list = append(list, function{
			name: f.Name.Name, text: text[at(f.Pos()):at(f.End())], nameAt: at(f.Name.Pos()) - at(f.Pos()), body: at(f.Body.Lbrace) + 1,
			call: func(name string) string { return callOf(f, name) },
		})
	}
	return list
}

// callOf returns the statement by which f calls a function with the same signature.
func callOf(f *ast.FuncDecl, name string) string {
	if f.Recv != nil {
		name = f.Recv.List[0].Names[0].Name + "." + name
	}
	var args []string
	for _, p := range f.Type.Params.List {
		for _, n := range p.Names {
			args = append(args, n.Name)
		}
	}
	call := fmt.Sprintf("%s(%s)", name, strings.Join(args, ", "))
	if f.Type.Results == nil {
		return call + "\n\t\treturn"
	}
	return "return " + call
}
