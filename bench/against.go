package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Few rounds carry little information. With many more, 2 to the power of minus rounds is no
// float64.
const (
	leastRounds = 10
	mostRounds  = 1000
)

// against compares this build with the older one that o names. The error has the WORSE figures, and
// the failures of this build.
func against(ctx context.Context, o options, stdout, stderr io.Writer, impls []*impl) error {
	old, err := exec.LookPath(o.against)
	if err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	d := duel{old: old, new: exe, time: o.time, rounds: o.rounds, stderr: stderr}
	return d.run(ctx, cells(impls, o.chooses), stdout)
}

// duel measures two builds of this command in turn. Both are driven by -cell and -time, which older
// builds also have.
type duel struct {
	old, new string // their files
	time     time.Duration
	rounds   int
	stderr   io.Writer
}

// match is one cell, measured by both builds.
type match struct {
	cell
	old, new []row // one for each round
	again    bool  // these are the second rounds
	failure  string
	broken   bool // the new build failed
}

// run measures and prints.
//
// Among a hundred figures of the same code there is nearly always one with an interval beside 1 by
// chance. So a cell with a WORSE figure is measured again: a figure counts as WORSE only if both
// measurements agree.
func (d *duel) run(ctx context.Context, list []cell, stdout io.Writer) error {
	if len(list) == 0 {
		return errNothing
	}
	matches := d.measure(ctx, list)
	var doubtful []cell
	for _, m := range matches {
		if m.hasWorse() && ctx.Err() == nil {
			fmt.Fprintf(d.stderr, "%s is measured again, because a figure is WORSE\n", m)
			doubtful = append(doubtful, m.cell)
		}
	}
	second := map[string]*match{}
	for _, m := range d.measure(ctx, doubtful) {
		m.again = true
		second[m.String()] = m
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	v := newVerdicts(matches, second)
	if _, err := io.WriteString(stdout, v.table()+"\n"+d.legend()); err != nil {
		return err
	}
	return v.err()
}

// measure measures every cell by both builds in each round, the old one first in one round and the
// new one first in the next.
func (d *duel) measure(ctx context.Context, list []cell) []*match {
	var matches []*match
	for _, c := range list {
		matches = append(matches, &match{cell: c})
	}
	p := progress{w: d.stderr, total: len(list) * d.rounds, begin: time.Now()}
	for round := range d.rounds {
		for _, m := range matches {
			if ctx.Err() != nil {
				return matches
			}
			if m.failure != "" {
				p.total--
				continue
			}
			p.done(m.cell, d.round(ctx, m, round%2 == 1))
		}
	}
	return matches
}

// round measures a cell once by both builds, and returns the progress report.
func (d *duel) round(ctx context.Context, m *match, newFirst bool) string {
	var old, new row
	turns := []func(){
		func() { old = measureBy(ctx, d.old, m.cell, d.time, grace) },
		func() { new = measureBy(ctx, d.new, m.cell, d.time, grace) },
	}
	if newFirst {
		slices.Reverse(turns)
	}
	for _, turn := range turns {
		turn()
	}
	switch {
	case new.Error != "":
		m.failure, m.broken = "the new build failed: "+new.Error, true
		return m.failure
	case old.Error != "":
		m.failure = "the old build failed: " + old.Error
		return m.failure
	}
	m.old, m.new = append(m.old, old), append(m.new, new)
	return fmt.Sprintf("old %s, new %s %s",
		number(m.workload.headline(&old)), number(m.workload.headline(&new)), m.workload.unit)
}

// legend returns the legend of the table.
func (d *duel) legend() string {
	_, _, sure := medianInterval(make([]float64, d.rounds))
	return fmt.Sprintf("Medians of %d rounds of %v each; the ratio is the median of the rounds' own, "+
		"above 1 is better.\nThe interval holds the true ratio with a confidence of %.1f %%. WORSE: all "+
		"of it is below %g, twice.\n%s/%s, %d processors%s.\n",
		d.rounds, d.time, 100*sure, tolerated,
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), congestionControl())
}

// compared are the figures in a comparison of two builds.
var compared = []struct {
	title string
	of    func(*row) figure
	less  bool    // a smaller figure is better
	blur  float64 // smaller differences count as none: allocations of the process itself
}{
	{title: "ops/s", of: opsPerS},
	{title: "MB/s", of: mbPerS},
	{title: "p50 µs", of: func(r *row) figure { return r.P50 }, less: true},
	{title: "p99 µs", of: p99, less: true},
	{title: "p99.9 µs", of: func(r *row) figure { return r.P999 }, less: true},
	{title: "allocs/op", of: func(r *row) figure { return r.AllocsPerOp }, less: true, blur: 0.02},
	{title: "B/op", of: func(r *row) figure { return r.BytesPerOp }, less: true, blur: 1},
	{title: "CPU µs/op", of: func(r *row) figure { return r.CPUPerOp }, less: true},
	{title: "memory B", of: memBytes, less: true},
	{title: "stack B", of: func(r *row) figure { return r.StackBytes }, less: true},
	{title: "one way ops/s", of: func(r *row) figure { return r.OneWay }},
}

// sides returns a figure of both builds, round by round, or false if one is missing.
func (m *match) sides(of func(*row) figure) (old, new []float64, ok bool) {
	collect := func(rows []row) (values []float64) {
		for _, r := range rows {
			if f := of(&r); f.known() {
				values = append(values, float64(f))
			}
		}
		return values
	}
	old, new = collect(m.old), collect(m.new)
	return old, new, len(old) > 0 && len(old) == len(m.old) && len(new) == len(m.new)
}

// compare returns the comparisons of the figures that the cell has, by their titles.
func (m *match) compare() map[string]comparison {
	found := map[string]comparison{}
	if m.failure != "" {
		return found
	}
	for _, f := range compared {
		if m.repeats(f.title) {
			continue
		}
		if old, new, ok := m.sides(f.of); ok {
			found[f.title] = compareFigure(old, new, f.less, f.blur)
		}
	}
	return found
}

// repeats reports whether a figure has the same information as the headline of the workload, if all
// operations have the same size.
func (m *match) repeats(title string) bool {
	unit := m.workload.unit
	if unit == "MB/s" {
		return title == "ops/s"
	}
	return title == "MB/s" && strings.HasSuffix(unit, "/s")
}

func (m *match) hasWorse() bool {
	for _, c := range m.compare() {
		if c.verdict == muchWorse {
			return true
		}
	}
	return false
}

// verdicts has the verdicts of all cells.
type verdicts struct {
	lines   []string
	figures int
	worse   []string // the figures that are WORSE
	broken  []string // the cells that the new build failed
}

// newVerdicts returns the verdicts of the matches. A second match of a cell replaces the first, and
// its WORSE figures count only if they were WORSE in the first.
func newVerdicts(matches []*match, second map[string]*match) *verdicts {
	v := &verdicts{}
	for _, first := range matches {
		m := first
		if s := second[m.String()]; s != nil {
			m = s
		}
		v.add(m, first.compare())
	}
	return v
}

func (v *verdicts) add(m *match, first map[string]comparison) {
	if m.failure != "" {
		why := strings.ReplaceAll(m.failure, "|", "/")
		v.lines = append(v.lines, fmt.Sprintf("| %s | | | | | | %s |", m, why))
	}
	if m.broken {
		v.broken = append(v.broken, m.String())
	}
	found := m.compare()
	for _, f := range compared {
		c, ok := found[f.title]
		if !ok {
			continue
		}
		if c.verdict == muchWorse && first[f.title].verdict != muchWorse {
			c.verdict = worse
		}
		if c.verdict == muchWorse {
			v.worse = append(v.worse, m.String()+" "+f.title)
		}
		v.figures++
		v.lines = append(v.lines, fmt.Sprintf("| %s | %s | %s | %s | %.3f | %.3f to %.3f | %s |",
			m, f.title, number(figure(c.old)), number(figure(c.new)), c.ratio, c.low, c.high, m.said(c.verdict)))
	}
}

// said returns a verdict, and whether it is the second one.
func (m *match) said(v verdict) string {
	if m.again {
		return string(v) + ", measured again"
	}
	return string(v)
}

// table returns a row for each figure.
func (v *verdicts) table() string {
	const head = "| cell | figure | old | new | ratio | interval | verdict |\n" +
		"| --- | --- | ---: | ---: | ---: | :---: | --- |\n"
	return head + strings.Join(v.lines, "\n") + "\n"
}

// err returns an error if a figure is WORSE, if the new build failed, or if nothing was compared.
func (v *verdicts) err() error {
	var errs []string
	if len(v.worse) > 0 {
		errs = append(errs, fmt.Sprintf("%d of %d figures are WORSE: %s",
			len(v.worse), v.figures, strings.Join(v.worse, ", ")))
	}
	if len(v.broken) > 0 {
		errs = append(errs, "the new build failed: "+strings.Join(v.broken, ", "))
	}
	switch {
	case len(errs) > 0:
		return errors.New(strings.Join(errs, "; "))
	case v.figures == 0:
		return errors.New("there is no figure that both builds have")
	}
	return nil
}
