package debugpage

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// table aligns cells in columns: to the right those that hold numbers, and to the left the others.
type table struct {
	rows  [][]string // the first one is the head
	right []bool     // by column
}

// number is a cell that is a number, with its unit.
type number string

func newTable(head ...string) *table {
	return &table{rows: [][]string{head}, right: make([]bool, len(head))}
}

// row adds a row. In each column, all cells are of one type.
func (t *table) row(cells ...any) {
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
func (t *table) print(b *bytes.Buffer) {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	b.WriteByte('\n')
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
