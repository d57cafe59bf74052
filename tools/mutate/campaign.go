package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"sync"
)

// journal holds the results so far, by the ids of the mutants. The last result of a mutant counts.
type journal struct {
	mu      sync.Mutex
	file    *os.File          // guarded by mu
	results map[string]result // guarded by mu
}

// campaign draws and tries mutants until the journal has the requested number.
func campaign(ctx context.Context, s settings) error {
	all, err := folders()
	if err != nil {
		return err
	}
	drawn, err := draw(all, s.seed, s.only)
	if err != nil {
		return err
	}
	j, err := open(s.journal)
	if err != nil {
		return err
	}
	defer j.file.Close()
	log.Printf("%d possible changes, seed %d", len(drawn), s.seed)
	work := make(chan *mutant)
	failed := make(chan error, s.parallel)
	var workers sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRunner(ctx, all, s.slack)
	for range s.parallel {
		workers.Go(func() { // ends when there is no more work
			for m := range work {
				if err := j.try(ctx, r, m, s.seed); err != nil {
					failed <- err
					stop()
					return
				}
			}
		})
	}
	j.hand(ctx, s, drawn, work)
	close(work)
	workers.Wait()
	j.table(os.Stdout)
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// hand sends the mutants to try to the workers.
func (j *journal) hand(ctx context.Context, s settings, drawn []*mutant, work chan<- *mutant) {
	for _, m := range drawn {
		before, known := j.of(m.ID)
		switch {
		case s.again && (!known || before.Verdict.caught()):
			continue
		case !s.again && known:
			continue
		case !s.again && j.count() >= s.n:
			return // mutants that are being tried come on top
		}
		select {
		case work <- m:
		case <-ctx.Done():
			return
		}
	}
}

// try tries m and records the result.
func (j *journal) try(ctx context.Context, r *runner, m *mutant, seed uint64) error {
	res, err := r.try(ctx, m)
	if err != nil {
		return err
	}
	res.Seed = seed
	line, err := json.Marshal(res)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if res.Verdict != skipped {
		log.Printf("%-9s %s:%d %s: %s -> %s  %v", res.Verdict, m.File, m.Line, m.Kind, m.From, m.To, res.Tests)
	}
	j.results[m.ID] = res
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) of(id string) (result, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	res, ok := j.results[id]
	return res, ok
}

// count returns the number of mutants in the journal that compile.
func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, res := range j.results {
		if res.Verdict != skipped {
			n++
		}
	}
	return n
}

// open reads a journal and opens it for further results.
func open(name string) (*journal, error) {
	j := &journal{results: map[string]result{}}
	before, err := os.Open(name)
	if err == nil {
		defer before.Close()
		lines := bufio.NewScanner(before)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var res result
			if err := json.Unmarshal(lines.Bytes(), &res); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			j.results[res.ID] = res
		}
		err = lines.Err()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	j.file, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return j, err
}
