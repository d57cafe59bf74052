package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"
)

// options are the values of the command line.
type options struct {
	help       bool
	json       bool
	quick      bool
	guard      float64
	against    string
	only       *regexp.Regexp // workloads; nil is all
	impl       *regexp.Regexp // implementations; nil means those of the table
	rounds     int
	time       time.Duration // of one cell
	plot       string
	update     string
	cell       string
	cpuprofile string
}

const usageText = `Usage: bench [flags]

It measures this library beside its peers and prints a Markdown table; README.md explains it. Progress goes to the standard error.
The exit status is 1 if something failed, and 2 for flags that make no sense.

With -against it measures this library only, by this build and by an older one in turn, and prints a
row for each figure: the median of the old build and of the new one, how many times better the new
one is (above 1 is better, also where less is), an interval of at least 95 % for that ratio (the order
statistics of the sign test), and a verdict:

  better  all of the interval is above 1
  same    1 is in the interval
  worse   all of the interval is below 1
  WORSE   all of it is below 0.97, and was again in a second measuring; the exit status is 1

`

// parseOptions returns the options in args. Before it returns an error, it has written the reason
// to stderr.
func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usageText); f.PrintDefaults() }
	f.BoolVar(&o.json, "json", false, "print one JSON object for each row instead of the table")
	f.BoolVar(&o.quick, "quick", false, "measure only this library and the floors, unless -impl says otherwise, one short round; with -against, short rounds")
	f.Float64Var(&o.guard, "guard", 0, "only check that 1,024 callers make at least `RATIO` times the calls of a bare ping-pong, or half of those of bare frames, in the best of three tries; takes ten seconds or so")
	f.StringVar(&o.against, "against", "", "compare this build with an older one, the program `BINARY`, measured in turn, by this library unless -impl says otherwise")
	f.Func("only", "measure only workloads that match `REGEXP`, or whose name with the number of callers does, as in call-64B/64", func(s string) (err error) { o.only, err = whole(s); return err })
	f.Func("impl", "measure only implementations that match `REGEXP`, among them those that the table leaves out",
		func(s string) (err error) { o.impl, err = whole(s); return err })
	f.IntVar(&o.rounds, "rounds", 0, "measure each cell `N` times, in turn with the others, and quote the median (default 3, with -quick 1, with -against 10 and no fewer)")
	f.DurationVar(&o.time, "time", 0, "measure each cell for this `DURATION` (default 2s, with -quick and -guard 1s)")
	f.StringVar(&o.plot, "plot", "", "also draw bars into `FILE`.svg")
	f.StringVar(&o.update, "update", "", "also put the table into `FILE`, between its markers, in place of the last one")
	f.StringVar(&o.cell, "cell", "", "measure only `WORKLOAD/CALLERS/IMPL`, in this process, and print its JSON object")
	f.StringVar(&o.cpuprofile, "cpuprofile", "", "with -cell: write a profile of the processor to `FILE`")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return options{help: true}, nil
	case err != nil:
		return o, err
	}
	if err := o.check(f.Args()); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return o, err
	}
	return o, nil
}

// whole compiles a pattern that has to match a whole name: "asterisque" should not choose
// "asterisque-tls" too.
func whole(pattern string) (*regexp.Regexp, error) { return regexp.Compile("^(?:" + pattern + ")$") }

// check fills in defaults, and returns an error that names a flag with an invalid value.
func (o *options) check(rest []string) error {
	short := o.quick || o.guard > 0
	if o.rounds == 0 {
		o.rounds = 3
		switch {
		case o.against != "":
			o.rounds = leastRounds
		case o.quick:
			o.rounds = 1
		}
	}
	if o.time == 0 {
		o.time = 2 * time.Second
		if short {
			o.time = time.Second
		}
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not a flag; flags begin with '-'", rest[0])
	case o.rounds < 1:
		return fmt.Errorf("-rounds %d: it has to be at least 1", o.rounds)
	case o.time < time.Millisecond:
		return fmt.Errorf("-time %v: it has to be at least 1ms", o.time)
	case o.against != "" && (o.rounds < leastRounds || o.rounds > mostRounds):
		return fmt.Errorf("-rounds %d: with -against it has to be between %d and %d", o.rounds, leastRounds, mostRounds)
	case o.against != "" && (o.guard > 0 || o.cell != "" || o.json || o.plot != "" || o.update != ""):
		return errors.New("-against prints a table of its own: only -only, -impl, -quick, -rounds and -time go with it")
	case o.cpuprofile != "" && o.cell == "":
		return errors.New("-cpuprofile is for one cell: say which one with -cell")
	case o.guard > 0 && (o.only != nil || o.impl != nil || o.cell != "" || o.json || o.plot != "" || o.update != ""):
		return errors.New("-guard measures what it needs and prints no table: no other flag but -time goes with it")
	}
	return nil
}
