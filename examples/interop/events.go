package main

import (
	"context"
	"sync"
)

// events are things that happen once, each with a word about it, and that goroutines can wait for.
// They are kept forever, which is fine for a test. Safe for concurrent use.
type events struct {
	mu  sync.Mutex
	all map[string]*event // guarded by mu; by name
}

type event struct {
	happened chan struct{} // closed when it has
	once     sync.Once
	word     string // set before happened is closed
}

func newEvents() *events { return &events{all: map[string]*event{}} }

func (e *events) of(name string) *event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all[name] == nil {
		e.all[name] = &event{happened: make(chan struct{})}
	}
	return e.all[name]
}

// happen makes an event happen, unless it has.
func (e *events) happen(name, word string) {
	ev := e.of(name)
	ev.once.Do(func() {
		ev.word = word
		close(ev.happened)
	})
}

// wait waits for an event, or for ctx, and returns the word.
func (e *events) wait(ctx context.Context, name string) (string, error) {
	ev := e.of(name)
	select {
	case <-ev.happened:
		return ev.word, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
