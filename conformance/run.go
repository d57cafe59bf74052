package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// longestScenario bounds one scenario with the usual patience, regardless of its steps.
const longestScenario = 60 * time.Second

// playOptions has the parameters of playing.
type playOptions struct {
	connecting bool
	without    []string
	parallel   int
	patience   time.Duration
}

// playAll plays scenarios, several at a time, and calls tell for each in their order.
func playAll(ctx context.Context, s *suite, list []scenario, from peers, h playOptions, tell func(scenarioOutcome)) []scenarioOutcome {
	done := make([]chan scenarioOutcome, len(list))
	places := make(chan struct{}, h.parallel)
	var playing sync.WaitGroup
	defer playing.Wait()
	for i := range list {
		done[i] = make(chan scenarioOutcome, 1)
	}
	playing.Go(func() {
		for i, sc := range list {
			places <- struct{}{}
			playing.Go(func() {
				done[i] <- playOne(ctx, s, sc, from, h)
				<-places
			})
		}
	})
	var all []scenarioOutcome
	for _, d := range done {
		o := <-d
		tell(o)
		all = append(all, o)
	}
	return all
}

func playOne(ctx context.Context, s *suite, sc scenario, from peers, h playOptions) scenarioOutcome {
	p := &player{suite: s, peers: from, connecting: h.connecting, without: h.without, patience: h.patience, parts: map[any]*partialMessage{}}
	ctx, cancel := context.WithTimeout(ctx, p.scaled(longestScenario))
	defer cancel()
	begin := time.Now()
	err := p.play(ctx, sc)
	o := scenarioOutcome{scenario: sc, took: time.Since(begin), err: err}
	var skip skipReason
	if errors.As(err, &skip) {
		o.err, o.skipped = nil, skip.reason
	}
	return o
}
