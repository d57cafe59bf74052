package project

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	remark   = regexp.MustCompile(`//.*`)
	declares = regexp.MustCompile(`(?m)^(func|type|var|const) (?:\(\w* ?\*?(\w+)[^)]*\) )?(\w*)`)
	member   = regexp.MustCompile(`(?m)^\t+((?:\w+, )*\w+)[ (]`)
	lock     = regexp.MustCompile(`\bsync\.(RW)?Mutex\n`)
	start    = regexp.MustCompile(`\bgo |\.(AfterFunc|Go)\(`)
	inTicks  = regexp.MustCompile("`([^`]+)`")
	aFile    = regexp.MustCompile(`^[\w./*-]+(\.go|/[\w./*-]*)$`)
	aUnit    = regexp.MustCompile(`\n(\n|\||- |\d+\. )| \| `)
)

// declarations returns the text of each declaration outside of functions, without comments, by its
// name and file. A name is f, T, T.method or T.field.
func declarations(t *testing.T) map[[2]string]string {
	all := map[[2]string]string{}
	for _, file := range filesThat(t, ".go") {
		source := remark.ReplaceAllString(text(t, file), "")
		places := append(declares.FindAllStringSubmatchIndex(source, -1), []int{len(source)})
		for i, at := range places[:len(places)-1] {
			of, name := "", source[at[6]:at[7]]
			if at[4] >= 0 {
				of = source[at[4]:at[5]] + "."
			}
			body := source[at[0]:places[i+1][0]]
			all[[2]string{of + name, file}] = body
			if source[at[2]:at[3]] == "func" {
				continue
			}
			for _, m := range member.FindAllStringSubmatch(body, -1) {
				for member := range strings.SplitSeq(m[1], ", ") {
					all[[2]string{strings.TrimPrefix(name+"."+member, "."), file}] = ""
				}
			}
		}
	}
	return all
}

// TestInside_NamesExist requires that each file and name in backticks exists, and that a name is
// declared in a file beside it: in the same paragraph, item or cell.
func TestInside_NamesExist(t *testing.T) {
	all := declarations(t)
	for _, unit := range aUnit.Split(code.ReplaceAllString(text(t, "docs/inside.md"), ""), -1) {
		var files, names []string
		for _, m := range inTicks.FindAllStringSubmatch(unit, -1) {
			if !aFile.MatchString(m[1]) {
				names = append(names, m[1])
				continue
			}
			found, _ := filepath.Glob(m[1])
			assert.NotEmpty(t, found, "there is no file %s", m[1])
			files = append(files, m[1])
		}
		for _, name := range names {
			found := false
			for d := range all {
				pkg := path.Base(path.Dir(d[1])) + "."
				found = found || d[0] == strings.TrimPrefix(name, pkg) && (len(files) == 0 || slices.Contains(files, d[1]))
			}
			assert.True(t, found, "%s is declared in none of %v", name, files)
		}
	}
}

// TestInside_LocksAndGoroutines requires a row for each lock and each start of a goroutine in the
// packages that have a row for one of their locks.
func TestInside_LocksAndGoroutines(t *testing.T) {
	_, page, _ := strings.Cut(text(t, "docs/inside.md"), "\n## Locks\n")
	locks, goroutines, _ := strings.Cut(page, "\n## Goroutines\n")
	covered := map[string]bool{}
	for _, m := range inTicks.FindAllStringSubmatch(locks, -1) {
		covered[path.Dir(m[1])] = covered[path.Dir(m[1])] || aFile.MatchString(m[1])
	}
	for d, body := range declarations(t) {
		if !covered[path.Dir(d[1])] || strings.HasSuffix(d[1], "_test.go") {
			continue
		}
		for rows, sign := range map[string]*regexp.Regexp{locks: lock, goroutines: start} {
			row := "(?m)^.*`" + regexp.QuoteMeta(d[0]) + "`.*`" + regexp.QuoteMeta(d[1]) + "`"
			assert.True(t, !sign.MatchString(body) || regexp.MustCompile(row).MatchString(rows), "%s in %s has no row", d[0], d[1])
		}
	}
}
