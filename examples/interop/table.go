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
	scheme  string
	results []result
}

// runAll runs both sides in this process, over each of the schemes in turn, and prints one table.
func runAll(ctx context.Context, f flags, schemes []string, stdout io.Writer) error {
	var columns []column
	failed := 0
	for _, scheme := range schemes {
		if f.codec != "" && isClassic(scheme+":") != (f.codec == "classic") {
			continue
		}
		c := column{scheme: scheme}
		n, err := runBoth(ctx, scheme, f, func(r result) { c.results = append(c.results, r) })
		if err != nil {
			return fmt.Errorf("%s: %w", scheme, err)
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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := listen(ctx, localURL(scheme, dir), f.codec, cfg, io.Discard)
	if err != nil {
		return 0, err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.serve(ctx, false) }() // until stop
	failed, err = visit(ctx, s.ln.URL(), f.codec, f.calls, client, tell)
	stop()
	return failed, errors.Join(err, <-stopped)
}

// printTable prints a line for each case with its times in milliseconds, and below why some were
// skipped or failed.
func printTable(w io.Writer, columns []column) {
	if len(columns) == 0 {
		return
	}
	fmt.Fprintf(w, "%-32s", "ms")
	for _, c := range columns {
		fmt.Fprintf(w, "%10s", c.scheme)
	}
	var notes []string
	for i, r := range columns[0].results {
		fmt.Fprintf(w, "\n%-32s", r.name)
		for _, c := range columns {
			r := c.results[i]
			switch r.outcome() {
			case "ok":
				fmt.Fprintf(w, "%10.1f", float64(r.took.Microseconds())/1000)
			case "skipped":
				fmt.Fprintf(w, "%10s", "–")
				notes = append(notes, fmt.Sprintf("–       %s: %s", r.name, r.err))
			default:
				fmt.Fprintf(w, "%10s", "FAILED")
				notes = append(notes, fmt.Sprintf("FAILED  %s, %s: %s", c.scheme, r.name, r.err))
			}
		}
	}
	fmt.Fprint(w, "\n\n")
	slices.Sort(notes)
	for _, note := range slices.Compact(notes) {
		fmt.Fprintln(w, note)
	}
}
