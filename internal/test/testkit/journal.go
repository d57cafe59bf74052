package testkit

import (
	"fmt"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// Journal records the calls of OnState.
type Journal struct {
	mu   sync.Mutex
	list []string
	Last error
}

// Note implements OnState.
func (j *Journal) Note(_ *asterisque.Connection, s asterisque.ConnectionState, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, s.String())
	j.Last = err
}

// Read returns the states so far.
func (j *Journal) Read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.list...)
}

// States records the calls of Hooks.LimitChanged.
type States struct {
	mu  sync.Mutex
	got []string
}

// Option returns the option that records in s.
func (s *States) Option() asterisque.Option {
	return asterisque.WithHooks(asterisque.Hooks{LimitChanged: func(_ *asterisque.Session, d asterisque.Direction, st limits.State) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got = append(s.got, fmt.Sprint(d, " ", st))
	}})
}

// List returns the changes so far.
func (s *States) List() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.got...)
}
