package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"time"
)

// grace is how long a cell may take beyond its measurement, before it counts as hung.
const grace = 30 * time.Second

// errNothing is the error of an empty choice.
var errNothing = errors.New("there is nothing to measure: -only and -impl match no workload and implementation that go together")

// measureAll measures the cells that o chooses and prints them. The error has the number of
// failures.
func measureAll(ctx context.Context, o options, stdout, stderr io.Writer, impls []*impl) error {
	list := cells(impls, o.chooses)
	if len(list) == 0 {
		return errNothing
	}
	p := progress{w: stderr, total: len(list) * o.rounds, begin: time.Now()}
	var rows []row
	for len(list) > 0 && ctx.Err() == nil {
		n := 1 // cells of one workload with equal callers: their rounds interleave
		for n < len(list) && list[n].workload == list[0].workload && list[n].callers == list[0].callers {
			n++
		}
		rounds := make([][]row, n)
		for range o.rounds {
			for i, c := range list[:n] {
				r := measureApart(ctx, c, o.time, grace)
				p.done(c, outcome(c, r))
				rounds[i] = append(rounds[i], r)
			}
		}
		for i, c := range list[:n] {
			rows = append(rows, mergeRounds(rounds[i], c.workload.headline))
		}
		list = list[n:]
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err := o.write(rows, stdout); err != nil {
		return err
	}
	return failures(rows)
}

// chooses reports whether a workload with this number of callers by an implementation is to be
// measured.
func (o *options) chooses(w *workload, callers int, i *impl) bool {
	if o.only != nil && !o.only.MatchString(w.name) && !o.only.MatchString(fmt.Sprintf("%s/%d", w.name, callers)) {
		return false
	}
	switch {
	case w.path != nil && o.only == nil:
		return false
	case o.impl != nil:
		return o.impl.MatchString(i.name)
	case o.against != "":
		return i.name == thisLibrary
	}
	return !i.extra && (!o.quick || isOurs(i.name) || isFloor(i.name))
}

// thisLibrary is the name of the implementation of this library.
const thisLibrary = "asterisque"

func isOurs(name string) bool { return name == thisLibrary || strings.HasPrefix(name, thisLibrary+"-") }

func isFloor(name string) bool { return strings.HasPrefix(name, "floor-") }

// failures returns an error that names the rows that failed, or nil.
func failures(rows []row) error {
	var names []string
	for _, r := range rows {
		if r.Error != "" {
			names = append(names, fmt.Sprintf("%s/%d/%s", r.Workload, r.Callers, r.Impl))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d rows failed: %s", len(names), len(rows), strings.Join(names, ", "))
}

// measureApart measures a cell in a separate process of this build.
func measureApart(ctx context.Context, c cell, d, patience time.Duration) row {
	exe, err := os.Executable()
	if err != nil {
		return failed(c, err.Error())
	}
	return measureBy(ctx, exe, c, d, patience)
}

// measureBy measures a cell in a process of the build in the file exe. It is ended if it takes
// longer than the time of its measuring and patience.
func measureBy(ctx context.Context, exe string, c cell, d, patience time.Duration) row {
	limit, cancel := context.WithTimeout(ctx, 3*d+patience)
	defer cancel()
	cmd := exec.CommandContext(limit, exe, "-cell", c.String(), "-time", d.String())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return failed(c, "interrupted")
	}
	if limit.Err() != nil {
		return failed(c, fmt.Sprintf("hung: ended after %v", 3*d+patience))
	}
	if err != nil {
		return failed(c, lastWords(stderr.String(), err))
	}
	r := newRow(c)
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		return failed(c, fmt.Sprintf("its output makes no sense: %v", err))
	}
	return r
}

// failed returns the row of a failed cell.
func failed(c cell, why string) row {
	r := newRow(c)
	r.Error = why
	return r
}

// lastWords returns the line with the reason of a cell's failure, or with the start of its panic.
func lastWords(stderr string, err error) string {
	for line := range strings.Lines(stderr) {
		for _, mark := range []string{"bench: ", "panic: ", "fatal error: "} {
			if _, why, ok := strings.Cut(line, mark); ok {
				return strings.TrimSpace(why)
			}
		}
	}
	return err.Error()
}

// runCell measures one cell in this process and prints its row as JSON.
func runCell(o options, stdout io.Writer, impls []*impl) error {
	c, err := findCell(o.cell, impls)
	if err != nil {
		return err
	}
	if o.cpuprofile != "" {
		f, err := os.Create(o.cpuprofile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	r, end, err := measureCell(c, o.time)
	defer within(closing, end)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(r)
}

// closing is how long a cell may take to close its resources, before its process ends anyway.
const closing = 2 * time.Second

// within waits until f has returned, for at most d.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() { // ends with f, or with the process
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// progress reports the progress of the measurements.
type progress struct {
	w     io.Writer
	n     int
	total int
	begin time.Time
}

func (p *progress) done(c cell, result string) {
	p.n++
	left := time.Since(p.begin) / time.Duration(p.n) * time.Duration(p.total-p.n)
	fmt.Fprintf(p.w, "%3d/%d  %-40s %s  (%v left)\n", p.n, p.total, c, result, left.Round(time.Second))
}

// outcome returns the report of progress for a row.
func outcome(c cell, r row) string {
	if r.Error != "" {
		return "failed: " + r.Error
	}
	return fmt.Sprintf("%s %s", number(c.workload.headline(&r)), c.workload.unit)
}
