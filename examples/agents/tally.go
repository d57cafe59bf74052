package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// tally counts the outcomes.
type tally struct {
	reports   atomic.Int64 // calls of agents that were answered
	described atomic.Int64 // calls of the controller that were answered
	runs      atomic.Int64 // commands that were followed to their last line
	cancelled atomic.Int64 // commands
	streams   atomic.Int64 // begun streams, commands included
	moved     atomic.Int64 // streams that continued with another server
	elsewhere atomic.Int64 // calls that a draining server has refused, and another one has run
	restarts  atomic.Int64
	failed    atomic.Int64

	mu    sync.Mutex
	first error // guarded by mu: the first failure
}

// note counts a completed call.
func (t *tally) note(good *atomic.Int64, what string, err error) {
	if err != nil {
		t.fail(what, err)
		return
	}
	good.Add(1)
}

func (t *tally) fail(what string, err error) {
	t.failed.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.first = fmt.Errorf("%s: %w", what, err)
	}
}

// err returns the first failure.
func (t *tally) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}
