package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// scenarioOutcome is the outcome of a scenario.
type scenarioOutcome struct {
	scenario
	took    time.Duration
	skipped string // why, if it was
	err     error  // nil unless it has failed
}

// printer prints outcomes in sequence.
type printer interface {
	begin(scenarios int)
	tell(o scenarioOutcome)
	end(all []scenarioOutcome, took time.Duration)
}

// linePrinter is the readable form. Colors are for terminals. Colors are for terminals.
type linePrinter struct {
	out    io.Writer
	colors bool
	quiet  bool // only failures
}

func (l linePrinter) begin(int) {}

func (l linePrinter) tell(o scenarioOutcome) {
	switch {
	case o.err != nil:
		fmt.Fprintf(l.out, "%s  %-24s %s\n", l.paint("1;31", "FAILED "), o.Section, o.Name)
		fmt.Fprintf(l.out, "         %s\n", strings.ReplaceAll(o.err.Error(), "; ", "\n         "))
	case o.skipped != "":
		fmt.Fprintf(l.out, "%s  %-24s %s: %s\n", l.paint("33", "skipped"), o.Section, o.Name, o.skipped)
	case !l.quiet:
		fmt.Fprintf(l.out, "%s  %-24s %s\n", l.paint("32", "ok     "), o.Section, o.Name)
	}
}

func (l linePrinter) end(all []scenarioOutcome, took time.Duration) {
	ok, failed, skipped := count(all)
	line := fmt.Sprintf("%d ok, %d FAILED, %d skipped in %.1f s", ok, failed, skipped, took.Seconds())
	color := "1;32"
	if failed > 0 {
		color = "1;31"
	}
	fmt.Fprintln(l.out, l.paint(color, line))
}

func (l linePrinter) paint(color, text string) string {
	if !l.colors {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func count(all []scenarioOutcome) (ok, failed, skipped int) {
	for _, o := range all {
		switch {
		case o.err != nil:
			failed++
		case o.skipped != "":
			skipped++
		default:
			ok++
		}
	}
	return ok, failed, skipped
}

// tapPrinter is the Test Anything Protocol, version 13.
type tapPrinter struct {
	out io.Writer
	n   int
}

func (t *tapPrinter) begin(scenarios int) { fmt.Fprintf(t.out, "TAP version 13\n1..%d\n", scenarios) }

func (t *tapPrinter) tell(o scenarioOutcome) {
	t.n++
	name := strings.ReplaceAll(o.Section+": "+o.Name, "#", "")
	switch {
	case o.err != nil:
		fmt.Fprintf(t.out, "not ok %d - %s\n  ---\n  message: %q\n  ...\n", t.n, name, o.err.Error())
	case o.skipped != "":
		fmt.Fprintf(t.out, "ok %d - %s # SKIP %s\n", t.n, name, o.skipped)
	default:
		fmt.Fprintf(t.out, "ok %d - %s\n", t.n, name)
	}
}

func (t *tapPrinter) end([]scenarioOutcome, time.Duration) {}

// The elements of a file of JUnit.
type (
	testSuite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     float64    `xml:"time,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Time    float64  `xml:"time,attr"`
		Failure *message `xml:"failure,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
	}
	message struct {
		Text string `xml:"message,attr"`
	}
)

// writeJUnit writes the outcomes to a file.
func writeJUnit(name string, all []scenarioOutcome, took time.Duration) error {
	_, failed, skipped := count(all)
	s := testSuite{Name: "asterisque", Tests: len(all), Failures: failed, Skipped: skipped, Time: took.Seconds()}
	for _, o := range all {
		c := testCase{Name: o.Name, Class: o.Section, Time: o.took.Seconds()}
		if o.err != nil {
			c.Failure = &message{o.err.Error()}
		} else if o.skipped != "" {
			c.Skipped = &message{o.skipped}
		}
		s.Cases = append(s.Cases, c)
	}
	b, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte(xml.Header), append(b, '\n')...), 0o644)
}
