package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// longestScenario bounds one scenario with the usual patience, regardless of its steps.
const longestScenario = 60 * time.Second

// how has the parameters of playing.
type how struct {
	connecting bool
	without    []string
	parallel   int
	patience   time.Duration
}

// playAll plays scenarios, several at a time, and calls tell for each in their order.
func playAll(ctx context.Context, s *suite, list []scenario, from peers, h how, tell func(outcome)) []outcome {
	done := make([]chan outcome, len(list))
	places := make(chan struct{}, h.parallel)
	var playing sync.WaitGroup
	defer playing.Wait()
	for i := range list {
		done[i] = make(chan outcome, 1)
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
	var all []outcome
	for _, d := range done {
		o := <-d
		tell(o)
		all = append(all, o)
	}
	return all
}

func playOne(ctx context.Context, s *suite, sc scenario, from peers, h how) outcome {
	p := &player{suite: s, peers: from, connecting: h.connecting, without: h.without, patience: h.patience, parts: map[any]*unfinished{}}
	ctx, cancel := context.WithTimeout(ctx, p.scaled(longestScenario))
	defer cancel()
	begin := time.Now()
	err := p.play(ctx, sc)
	o := outcome{scenario: sc, took: time.Since(begin), err: err}
	var skip skipped
	if errors.As(err, &skip) {
		o.err, o.skipped = nil, skip.reason
	}
	return o
}
