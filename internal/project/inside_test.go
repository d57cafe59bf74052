package project

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const insidePage = "docs/inside.md"

var (
	inTicks = regexp.MustCompile("`([^`]+)`")
	aPath   = regexp.MustCompile(`^[\w./*-]+$`)
	aName   = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}$`)
)

func TestInside_NamesExist(t *testing.T) {
	s := sources(t)
	named := 0
	for _, unit := range units(text(t, insidePage)) {
		files, names := namedIn(t, unit)
		named += len(files) + len(names)
		for _, file := range files {
			there, err := filepath.Glob(file)
			assert.NoError(t, err)
			assert.NotEmpty(t, there, "%s is not there", file)
		}
		for _, name := range names {
			if err := s.lacks(name, files); err != "" {
				t.Errorf("%s: %s: %s", insidePage, name, err)
			}
		}
	}
	require.Greater(t, named, 300, "the search finds the names")
}

func TestInside_LocksAndGoroutines(t *testing.T) {
	s := sources(t)
	require.NotEmpty(t, s.locks)
	require.NotEmpty(t, s.starts)
	page := text(t, insidePage)
	for section, all := range map[string][]declared{"Locks": s.locks, "Goroutines": s.starts} {
		_, rest, ok := strings.Cut(page, "\n## "+section+"\n")
		require.True(t, ok, section)
		body, _, _ := strings.Cut(rest, "\n## ")
		for _, d := range all {
			if !slices.ContainsFunc(units(body), func(u string) bool {
				return strings.Contains(u, "`"+d.name+"`") && strings.Contains(u, "`"+d.file+"`")
			}) {
				t.Errorf("%s: %s has no row with `%s` and `%s`", insidePage, section, d.name, d.file)
			}
		}
	}
}

func TestInside_FindsWrongNames(t *testing.T) {
	s := sources(t)
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"Outbox.Put", []string{"internal/outbox/outbox_put.go"}, ""},
		{"Outbox.Put", nil, ""},
		{"outbox.Outbox.Put", nil, ""},
		{"Outbox.batch", []string{"internal/outbox/outbox.go"}, ""},
		{"Outbox.Put", []string{"internal/outbox/outbox.go"}, "it is declared in internal/outbox/outbox_put.go"},
		{"Outbox.Putt", nil, "it is declared nowhere"},
	} {
		require.Equal(t, c.want, s.lacks(c.name, c.files), c.name)
	}
}

// units returns the paragraphs, items and rows of a page, without code. The last cell of a row is a
// unit of its own.
func units(page string) (units []string) {
	begins := regexp.MustCompile(`^(\||[-#]|\d+\. )`)
	var unit []string
	end := func() {
		all := strings.Join(unit, " ")
		if row, ok := strings.CutSuffix(all, " |"); ok {
			last := strings.LastIndex(row, " | ")
			units = append(units, row[last:])
			all = row[:last]
		}
		units = append(units, all)
		unit = nil
	}
	for line := range strings.SplitSeq(code.ReplaceAllString(page, ""), "\n") {
		if line == "" || begins.MatchString(line) {
			end()
		}
		if line != "" {
			unit = append(unit, strings.TrimSpace(line))
		}
	}
	end()
	return units
}

// namedIn returns the files and the Go names in backticks in a unit.
func namedIn(t *testing.T, unit string) (files, names []string) {
	for _, m := range inTicks.FindAllStringSubmatch(unit, -1) {
		switch ext := path.Ext(m[1]); {
		case aPath.MatchString(m[1]) && (ext == ".go" || strings.Contains(m[1], "/")):
			files = append(files, m[1])
		case aName.MatchString(m[1]):
			names = append(names, m[1])
		default:
			t.Errorf("%s: %s is neither a file nor a Go name", insidePage, m[0])
		}
	}
	return files, names
}

// lacks returns the fault of a name in a unit with files, or "": the name has to be declared in one
// of these files, if there are any.
func (s *source) lacks(name string, files []string) string {
	in := s.files[name]
	switch {
	case len(in) == 0:
		return "it is declared nowhere"
	case len(files) > 0 && !slices.ContainsFunc(in, func(f string) bool { return slices.Contains(files, f) }):
		return "it is declared in " + strings.Join(in, ", ")
	}
	return ""
}
