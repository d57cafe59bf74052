// Command mutate measures whether the tests detect wrong code. It changes one place of a package at
// a time (a condition negated, a comparison off by one, a statement left out, a constant one
// larger), runs the tests that should fail, and reports the changes that no test has detected.
//
//	go run ./tools/mutate -n 60 -journal /tmp/m.jsonl
//	go run ./tools/mutate -n 20 -only internal/outbox -journal /tmp/o.jsonl
//	go run ./tools/mutate -again -journal /tmp/m.jsonl     the mutants that no test has caught
//
// The sources stay as they are: the compiler sees the change through an overlay. Each result is
// appended to the journal at once. The same command continues an existing journal.
//
// The seed determines the order of the changes. A change keeps its place in that order when other
// functions change.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"time"
)

// settings are the values of the flags.
type settings struct {
	seed     uint64
	n        int
	only     string
	journal  string
	again    bool
	parallel int
	slack    time.Duration
}

func main() {
	log.SetFlags(log.Ltime)
	var s settings
	flag.Uint64Var(&s.seed, "seed", 1, "decides which changes are drawn, and in which order")
	flag.IntVar(&s.n, "n", 60, "how many changes that compile are to be in the journal")
	flag.StringVar(&s.only, "only", "", "draw from files with a path that begins with this")
	flag.StringVar(&s.journal, "journal", "", "the file for results, one JSON object a line")
	flag.BoolVar(&s.again, "again", false, "try those of the journal again that no test has caught, and draw none")
	flag.IntVar(&s.parallel, "parallel", 2, "how many changes are tried at the same time")
	flag.DurationVar(&s.slack, "slack", 30*time.Second, "how much longer than twice the usual a package's tests may take")
	flag.Parse()
	if s.journal == "" {
		log.Fatal("-journal says where the results go")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := campaign(ctx, s); err != nil {
		log.Fatal(err)
	}
}
