package debugpage

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// textTable aligns cells in columns. Columns of numbers are aligned right, all other columns left.
type textTable struct {
	groups []group
	rows   [][]string // the first row is the header
	right  []bool     // by column
}

// group is a name above the heads of columns that belong together.
type group struct {
	name        string
	first, last int // columns
}

// number is a cell that is a number, with its unit.
type number string

func newTable(head ...string) *textTable {
	return &textTable{rows: [][]string{head}, right: make([]bool, len(head))}
}

// group names the columns from first to last. Groups are named from left to right.
func (t *textTable) group(name string, first, last int) {
	t.groups = append(t.groups, group{name, first, last})
}

// row adds a row. In each column, all cells are of one type.
func (t *textTable) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
		switch c.(type) {
		case int, uint16, uint64, number:
			t.right[i] = true
		}
	}
	t.rows = append(t.rows, row)
}

// print writes the table, indented, after an empty line.
func (t *textTable) print(b *bytes.Buffer) {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, g := range t.groups {
		t.widen(widths, g)
	}
	b.WriteByte('\n')
	t.printGroups(b, widths)
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				line.WriteString("  " + space + cell)
			} else {
				line.WriteString("  " + cell + space)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// gap is the number of spaces between two columns.
const gap = 2

// width returns the total width of the columns of g.
func (g *group) width(widths []int) int {
	w := gap * (g.last - g.first)
	for _, n := range widths[g.first : g.last+1] {
		w += n
	}
	return w
}

// widen makes the columns of g as wide as its name.
func (t *textTable) widen(widths []int, g group) {
	widths[g.first] += max(0, utf8.RuneCountInString(g.name)-g.width(widths))
}

// printGroups writes the names of groups, each above the right end of its columns, and a line below
// it.
func (t *textTable) printGroups(b *bytes.Buffer, widths []int) {
	if len(t.groups) == 0 {
		return
	}
	var line strings.Builder
	at := 0
	for _, g := range t.groups {
		for ; at < g.first; at++ {
			line.WriteString(strings.Repeat(" ", gap+widths[at]))
		}
		at = g.last + 1
		dashes := g.width(widths) - utf8.RuneCountInString(g.name)
		line.WriteString(strings.Repeat(" ", gap) + strings.Repeat("─", dashes/2) + g.name + strings.Repeat("─", dashes-dashes/2))
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}
