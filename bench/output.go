package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
)

// write prints rows as the options in o specify, and writes the files that they name.
func (o *options) write(rows []row, stdout io.Writer) error {
	if o.json {
		e := json.NewEncoder(stdout)
		for _, r := range rows {
			if err := e.Encode(r); err != nil {
				return err
			}
		}
	} else if _, err := io.WriteString(stdout, o.report(rows)); err != nil {
		return err
	}
	if o.plot != "" {
		if err := plotRows(rows, o.plot); err != nil {
			return fmt.Errorf("-plot %s: %w", o.plot, err)
		}
	}
	if o.update != "" {
		if err := update(o.update, o.report(rows)); err != nil {
			return fmt.Errorf("-update %s: %w", o.update, err)
		}
	}
	return nil
}

// report returns the table, and below it the conditions of the measurement.
func (o *options) report(rows []row) string {
	return fmt.Sprintf("%s\n%s, %s/%s, %d processors%s; each cell is the median of %d × %v.\n",
		table(rows), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), congestionControl(), o.rounds, o.time)
}

// congestionControl returns the congestion control of TCP, if the system reports it: bbr paces its
// packets even here, which makes bulk transfers two to four times as expensive for some patterns of
// writes.
func congestionControl() string {
	name, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		return ""
	}
	return ", TCP with " + strings.TrimSpace(string(name))
}

// column is one column of the table.
type column struct {
	title string
	text  func(*row) string
}

var columns = []column{
	{"ops/s", func(r *row) string { return number(r.OpsPerS) }},
	{"MB/s", func(r *row) string { return number(r.MBPerS) }},
	{"p50 µs", func(r *row) string { return number(r.P50) }},
	{"p99 µs", func(r *row) string { return number(r.P99) }},
	{"p99.9 µs", func(r *row) string { return number(r.P999) }},
	{"allocs/op", func(r *row) string { return number(r.AllocsPerOp) }},
	{"B/op", func(r *row) string { return number(r.BytesPerOp) }},
	{"CPU µs/op", func(r *row) string { return number(r.CPUPerOp) }},
	{"memory B", func(r *row) string { return number(r.MemBytes) }},
	{"spread", func(r *row) string { return percent(r.Spread) }},
}

// table returns rows as a Markdown table, in their order.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| workload | × | implementation |")
	rule := "\n| --- | ---: | --- |"
	for _, c := range columns {
		b.WriteString(" " + c.title + " |")
		rule += " ---: |"
	}
	b.WriteString(" |" + rule + " --- |\n")
	for _, r := range rows {
		name := r.Impl
		if name == thisLibrary {
			name = "**" + name + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", r.Workload, thousands(int64(r.Callers)), name)
		for _, c := range columns {
			b.WriteString(" " + c.text(&r) + " |")
		}
		b.WriteString(" " + remark(&r) + " |\n")
	}
	return b.String()
}

// remark returns the remark of a row beside its figures.
func remark(r *row) string {
	switch {
	case r.Error != "":
		return "failed: " + strings.ReplaceAll(r.Error, "|", "/")
	case r.OneWay.known():
		return fmt.Sprintf("one way %s ops/s: %.2f times that", number(r.OneWay), r.OpsPerS/r.OneWay)
	case r.StackBytes.known():
		return fmt.Sprintf("and stacks of %s B", number(r.StackBytes))
	}
	return pathRemark(r)
}

// pathRemark returns the figures of a row in relation to its path.
func pathRemark(r *row) string {
	var parts []string
	for _, p := range []struct {
		f    figure
		text string
	}{
		{r.RoundTrips, "%s round trips"},
		{r.Changing, "%s within a second of a change"},
		{r.OfPath, "%s of what the path allows"},
		{r.Jain, "Jain's index %s"},
	} {
		if p.f.known() {
			parts = append(parts, fmt.Sprintf(p.text, number(p.f)))
		}
	}
	return strings.Join(parts, ", ")
}

// number returns f with three significant digits, or nothing if it is absent.
func number(f figure) string {
	v := float64(f)
	switch {
	case !f.known() || math.IsInf(v, 0):
		return ""
	case math.Abs(v) < 0.005:
		return "0"
	case math.Abs(v) < 10:
		return fmt.Sprintf("%.2f", v)
	case math.Abs(v) < 100:
		return fmt.Sprintf("%.1f", v)
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	return thousands(int64(math.Round(v/unit) * unit))
}

// thousands returns n with commas.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percent returns a share, or nothing if it is absent.
func percent(f figure) string {
	if !f.known() || math.IsInf(float64(f), 0) {
		return ""
	}
	return fmt.Sprintf("%.0f %%", f*100)
}

// The markers around the table.
const (
	tableBegin = "<!-- table: begin -->\n"
	tableEnd   = "<!-- table: end -->\n"
)

// update puts text between the markers in a file.
func update(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(old, []byte(tableBegin))
	_, after, ok2 := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ok2 {
		return errors.New("it needs two lines for the table to stand between, " + strings.TrimSpace(tableBegin) + " and " + strings.TrimSpace(tableEnd))
	}
	return os.WriteFile(file, []byte(string(before)+tableBegin+"\n"+text+"\n"+tableEnd+string(after)), 0o644)
}
