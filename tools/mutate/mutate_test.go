package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

const source = `package p

type queue[T any] struct{ n int }

func (q *queue[T]) put(limit int, ok bool) bool {
	if q.n < limit && ok {
		q.n += 2
		return true
	}
	log("full")
	return false
}

func (q *queue[T]) String() string { return log("as it is" + "") }

func log(string) string { return "" }
`

// changes returns the mutants of a file with src, as "kind: from -> to".
func changes(t *testing.T, src string) []string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600))
	list, err := mutants(folder{path: "p", dir: dir}, "p.go", 1)
	require.NoError(t, err)
	var texts []string
	for _, m := range list {
		texts = append(texts, m.Kind+": "+m.From+" -> "+m.To)
	}
	return texts
}

func TestMutants_OnePlaceEach(t *testing.T) {
	require.ElementsMatch(t, []string{
		"condition: if q.n < limit && ok { -> if !(q.n < limit && ok) {",
		"logic: if q.n < limit && ok { -> if q.n < limit || ok {",
		"comparison: if q.n < limit && ok { -> if q.n <= limit && ok {",
		"constant: q.n += 2 -> q.n += 3",
		"dropped: q.n += 2 -> {}",
		"constant: return true -> return false",
		"dropped: return true -> {}",
		"constant: return false -> return true",
		"dropped: return false -> {}", // this one will not compile
	}, changes(t, source),
		"what only people read stays as it is")
}

func TestDraw_IsStableForASeed(t *testing.T) {
	order := func(seed uint64, src string) []string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600))
		drawn, err := draw([]folder{{path: "p", dir: dir, files: []string{"p.go"}}}, seed, "p/")
		require.NoError(t, err)
		var ids []string
		for _, m := range drawn {
			ids = append(ids, m.ID)
		}
		return ids
	}
	before := order(1, source)
	require.Len(t, before, 9)
	require.Equal(t, before, order(1, source))
	require.NotEqual(t, before, order(2, source))
	after := order(1, source+"\nvar more = 1 < 2\n")
	require.Greater(t, len(after), len(before))
	require.Equal(t, before, slices.DeleteFunc(after, func(id string) bool { return !slices.Contains(before, id) }))
}

func TestSuites_LowestFirst(t *testing.T) {
	all := []folder{
		{path: ".", tested: true, imports: []string{"pipe"}},
		{path: "codec", tested: true},
		{path: "internal/native", imports: []string{"codec"}},
		{path: "internal/piping", tested: true, imports: []string{"codec"}},
		{path: "pipe", tested: true, imports: []string{"internal/piping"}},
		{path: "test/calls", tested: true, imports: []string{"."}},
	}
	var paths []string
	for _, f := range suites(all, "internal/piping") {
		paths = append(paths, f.path)
	}
	require.Equal(t, []string{"internal/piping", "pipe", ".", "test/calls"}, paths)
}

func TestVerdict_OfOutput(t *testing.T) {
	for output, want := range map[string]verdict{
		"--- FAIL: TestX (0.00s)\n    x_test.go:1: no":                       assertion,
		"goroutines left behind by the tests:":                               assertion,
		"--- FAIL: a test is not done after 5s.":                             overdue,
		"Error Trace:\n--- FAIL: a test is not done after 5s.":               assertion,
		"--- FAIL: TestX\npanic: deadlock: all goroutines in bubble are ...": deadlock,
		"--- FAIL: TestX\npanic: runtime error: index out of range":          panicked,
		"--- FAIL: TestX\n  Error Trace:\n--- FAIL: TestY\npanic: BUG":       assertion,
		"fatal error: all goroutines are asleep - deadlock!":                 deadlock,
		"panic: test timed out after 1m\n\trunning tests:\n\t\tTestX (3s)":   hang,
		"WARNING: DATA RACE\n--- FAIL: TestX":                                race,
	} {
		require.Equal(t, want, judge(output), output)
	}
	require.Equal(t, []string{"TestX"}, failed("panic: test timed out after 1m\n\trunning tests:\n\t\tTestX (3s)"))
	require.Equal(t, []string{"TestX", "TestX/part"}, failed("--- FAIL: TestX (0s)\n    --- FAIL: TestX/part (0s)"))
}

func TestPace_QuickTestsFirst(t *testing.T) {
	p := paceOf("--- PASS: TestA (0.10s)\n--- PASS: TestB (3.00s)\n    --- PASS: TestB/part (3.00s)\n--- PASS: TestC (0.21s)\n", time.Second)
	require.Equal(t, []string{"-test.skip=^(TestB|TestC)$", "-test.run=^(TestB|TestC)$"}, p.parts())
	require.Equal(t, time.Second, p.all, "some were parallel")
	require.Equal(t, []string{"-test.run=."}, paceOf("--- PASS: TestA (0.10s)\n", time.Second).parts())
}

func TestJournal_Continues(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := open(name)
	require.NoError(t, err)
	_, err = j.file.WriteString(`{"id":"a","verdict":"survived"}` + "\n" + `{"id":"b","verdict":"skipped"}` + "\n" + `{"id":"a","verdict":"assertion"}` + "\n")
	require.NoError(t, err)
	require.NoError(t, j.file.Close())
	j, err = open(name)
	require.NoError(t, err)
	require.Equal(t, 1, j.count(), "a mutant that does not compile does not count")
	res, ok := j.of("a")
	require.True(t, ok)
	require.Equal(t, assertion, res.Verdict, "the last one")
	var table strings.Builder
	j.table(&table)
	require.Contains(t, table.String(), "assertion    1  100.0 %")
	require.NoError(t, j.file.Close())
}
