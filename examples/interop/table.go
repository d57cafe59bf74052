package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// column is a run of the matrix.
type column struct {
	title         string
	scheme, codec string
	results       []result
}

// columnsOf returns the runs over schemes. Without a codec name the classic protocol is run with
// each of its own.
func columnsOf(schemes []string, codecName string) (columns []column) {
	for _, scheme := range schemes {
		switch {
		case !carries(scheme, codecName):
		case isClassic(scheme+":") && codecName == "":
			for _, c := range classicCodecs {
				columns = append(columns, column{title: c.Name(), scheme: scheme, codec: c.Name()})
			}
		default:
			columns = append(columns, column{title: scheme, scheme: scheme, codec: codecName})
		}
	}
	return columns
}

// width returns the number of characters in each line of the column.
func (c column) width() int { return max(10, len(c.title)+2) }

// runAll runs both sides in this process, over each of the schemes in turn, and prints one table.
func runAll(ctx context.Context, f flags, schemes []string, stdout io.Writer) error {
	var columns []column
	failed := 0
	for _, c := range columnsOf(schemes, f.codec) {
		f.codec = c.codec
		n, err := runBoth(ctx, c.scheme, f, func(r result) { c.results = append(c.results, r) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
		failed += n
		columns = append(columns, c)
	}
	printTable(stdout, columns)
	if failed > 0 {
		return fmt.Errorf("%d FAILED", failed)
	}
	fmt.Fprintln(stdout, "all ok")
	return nil
}

// runBoth runs both sides over one scheme.
func runBoth(ctx context.Context, scheme string, f flags, tell func(result)) (failed int, err error) {
	dir, err := os.MkdirTemp("", "interop")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cfg, client, _, err := selfMade()
	if err != nil {
		return 0, err
	}
	url, end, err := localURL(scheme, dir)
	if err != nil {
		return 0, err
	}
	defer end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := listen(ctx, url, f.codec, cfg, io.Discard)
	if err != nil {
		return 0, err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.serve(ctx, false) }() // until stop
	failed, err = visit(ctx, s.ln.URL(), f.codec, f.calls, client, tell)
	stop()
	return failed, errors.Join(err, <-stopped)
}

// printTable prints a line for each case with its times in milliseconds, and below it the reasons
// of skipped and failed cases.
func printTable(w io.Writer, columns []column) {
	if len(columns) == 0 {
		return
	}
	fmt.Fprintf(w, "%-32s", "ms")
	for _, c := range columns {
		fmt.Fprintf(w, "%*s", c.width(), c.title)
	}
	var notes []string
	for i, r := range columns[0].results {
		fmt.Fprintf(w, "\n%-32s", r.name)
		for _, c := range columns {
			r := c.results[i]
			switch r.outcome() {
			case "ok":
				fmt.Fprintf(w, "%*.1f", c.width(), float64(r.took.Microseconds())/1000)
			case "skipped":
				fmt.Fprintf(w, "%*s", c.width(), "–")
				notes = append(notes, fmt.Sprintf("–       %s: %s", r.name, r.err))
			default:
				fmt.Fprintf(w, "%*s", c.width(), "FAILED")
				notes = append(notes, fmt.Sprintf("FAILED  %s, %s: %s", c.title, r.name, r.err))
			}
		}
	}
	fmt.Fprint(w, "\n\n")
	slices.Sort(notes)
	for _, note := range slices.Compact(notes) {
		fmt.Fprintln(w, note)
	}
}
