package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table is the file with the bounds, relative to the root of the repository.
const table = "internal/knot/bounds.txt"

// row is a line of the table: the measured quantity, its bound, and the value reached so far.
type row struct {
	of, what string
	bound    int
	reached  int // absent: the quantity does not exist yet
}

const absent = -1

// figure is the measured value of a row, with a hint for the reader.
type figure struct {
	number int
	hint   string
}

// parseRows reads the table. Lines that begin with # are comments.
func parseRows(text string) (rows []row, err error) {
	for n, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parseRow(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", table, n+1, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func parseRow(words []string) (r row, err error) {
	if len(words) != 4 {
		return r, errors.New("a row is: of, what, bound, reached")
	}
	r = row{of: words[0], what: words[1], reached: absent}
	if r.bound, err = strconv.Atoi(words[2]); err != nil || words[3] == "-" {
		return r, err
	}
	if r.reached, err = strconv.Atoi(words[3]); err == nil && r.reached < r.bound {
		err = errors.New("the reached value is never below the bound: write the bound")
	}
	return r, err
}

// check prints the state of each row, and returns an error if a figure is above the value reached.
func check(w io.Writer, rows []row, figures []figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "of\twhat\tbound\treached\tnow\t")
	above, below := 0, 0
	for i, r := range rows {
		f := figures[i]
		note := ""
		switch {
		case f.number == absent:
			note = "still to come"
		case f.number > max(r.reached, r.bound):
			note = "ABOVE: " + f.hint
			above++
		case r.reached != max(f.number, r.bound):
			note = "lower the table"
			below++
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", r.of, r.what, r.bound, number(r.reached), number(f.number), note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if below > 0 {
		fmt.Fprintln(w, "the table can be lowered: go run ./internal/knot -lower")
	}
	if above > 0 {
		return fmt.Errorf("%d numbers are above the reached values", above)
	}
	return nil
}

func number(n int) string {
	if n == absent {
		return "-"
	}
	return strconv.Itoa(n)
}

// lowered returns the text of the table with the present figures where they are lower.
func lowered(text string, rows []row, figures []figure) string {
	lines := strings.Split(text, "\n")
	i := 0
	for n, line := range lines {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, f := rows[i], figures[i]
		i++
		now := max(f.number, r.bound)
		if f.number != absent && (r.reached == absent || now < r.reached) {
			lines[n] = fmt.Sprintf("%-18s %-30s %5d  %7d", r.of, r.what, r.bound, now)
		}
	}
	return strings.Join(lines, "\n")
}
