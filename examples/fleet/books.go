package main

import (
	"fmt"
	"maps"
	"slices"
)

// fate is the set of events of one call in the journals.
type fate uint8

const (
	wasMade fate = 1 << iota
	wasAnswered
	hasFailed
	wasRefused
	hasRun
	hasRunAgain
	wentThroughExchange
)

// books are the fates of all calls, by caller and number.
type books struct {
	fates map[string][]fate
	of    map[string]string         // by caller: its name in the cluster
	why   map[string]map[string]int // how many have failed, by the same name and by reason
	noted map[string]int            // number of each event
}

func newBooks() *books {
	return &books{
		fates: make(map[string][]fate), of: make(map[string]string), why: make(map[string]map[string]int), noted: make(map[string]int),
	}
}

// mostN bounds the memory that a journal can cause.
const mostN = 10_000_000

// take enters a line of the journal of a process with a name in the cluster.
func (b *books) take(name, line string) error {
	e, err := parseEntry(line)
	if err != nil {
		return err
	}
	n := int(e.call.N)
	if n < 1 || n > mostN {
		return fmt.Errorf("%q is a call that cannot be", line)
	}
	if e.event == noted {
		b.noted[e.why]++
		return nil
	}
	all := b.fates[e.call.Caller]
	if missing := n - len(all); missing > 0 {
		all = append(all, make([]fate, missing)...)
		b.fates[e.call.Caller] = all
	}
	if !b.enter(name, e, &all[n-1]) {
		return fmt.Errorf("%q is no line of a journal", line)
	}
	return nil
}

// enter adds an event of a call to its fate. It reports false if that event is impossible.
func (b *books) enter(name string, e entry, at *fate) bool {
	if e.why == throughExchange {
		*at |= wentThroughExchange
	}
	switch e.event {
	case made:
		b.of[e.call.Caller] = name
		*at |= wasMade
	case answered:
		*at |= wasAnswered
	case failed:
		*at |= hasFailed
		b.count(name, e.why+", and may have run")
	case refused:
		*at |= wasRefused
		b.count(name, e.why+", and did not run")
	case ran:
		if *at&hasRun != 0 {
			*at |= hasRunAgain
		}
		*at |= hasRun
	default:
		return false
	}
	return true
}

func (b *books) count(name, why string) {
	if b.why[name] == nil {
		b.why[name] = make(map[string]int)
	}
	b.why[name][why]++
}

// balance sums up the calls of all callers with one name.
type balance struct {
	made, answered int
	exchanged      int            // of the answered ones, those that went through the exchange
	failed         map[string]int // by reason
	doubled        int            // they ran more than once
	lost           int            // they were answered and did not run, or never ended
	untrue         int            // they ran, and their callers got an error that denies it
}

// balance closes the books for the calls of all callers with a name. Calls that have run without a
// record of being made count as lost as well: their callers' journal is lost.
func (b *books) balance(name string) balance {
	sum := balance{failed: b.why[name]}
	for caller, fates := range b.fates {
		if of, known := b.of[caller]; known && of != name {
			continue
		}
		for _, f := range fates {
			sum.add(f)
		}
	}
	return sum
}

func (s *balance) add(f fate) {
	is := func(all, of fate) int {
		if f&all == of {
			return 1
		}
		return 0
	}
	ended := wasAnswered | hasFailed | wasRefused
	s.made += is(wasMade, wasMade)
	s.answered += is(wasAnswered, wasAnswered)
	s.exchanged += is(wasAnswered|wentThroughExchange, wasAnswered|wentThroughExchange)
	s.doubled += is(hasRunAgain, hasRunAgain)
	s.lost += is(wasMade|ended, wasMade) + is(wasAnswered|hasRun, wasAnswered) + is(wasMade|hasRun, hasRun)
	s.untrue += is(wasRefused|hasRun, wasRefused|hasRun)
}

// leastAnswered is how many of 100 calls have to be answered.
const leastAnswered = 95

// check returns an error for a balance that is wrong.
func (s *balance) check(whose string) error {
	switch {
	case s.doubled > 0:
		return fmt.Errorf("%d calls of %s ran twice", s.doubled, whose)
	case s.lost > 0:
		return fmt.Errorf("%d calls of %s were lost", s.lost, whose)
	case s.untrue > 0:
		return fmt.Errorf("%d calls of %s ran, and failed with an error that says they did not", s.untrue, whose)
	case s.made == 0:
		return fmt.Errorf("%s have made no calls", whose)
	case s.answered*100 < s.made*leastAnswered:
		return fmt.Errorf("of %d calls of %s only %d were answered", s.made, whose, s.answered)
	}
	return nil
}

// whys returns the reasons of failed calls, sorted.
func whys(all ...balance) []string {
	found := make(map[string]bool)
	for _, b := range all {
		for why := range b.failed {
			found[why] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
