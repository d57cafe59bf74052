package main

import (
	"fmt"
	"time"
)

// board has the latest figures of each process, in the order of their first appearance. It is for
// one goroutine.
type board struct {
	all []*seen
}

// seen has the latest figures of one process.
type seen struct {
	name, id string // these are fixed
	instance string // another one is a restarted process
	at       time.Time
	last     figures
	row      row
}

// row is a line of the table.
type row struct {
	name, state    string
	answers, calls string // a second
	p99            time.Duration
	waiting        int64
	failed         int64
	sessions       string
}

// take enters the answers of the processes. Those that have left the cluster are away.
func (b *board) take(now time.Time, answers []answer) {
	for _, s := range b.all {
		s.row = row{name: s.id, state: "away"}
	}
	for _, a := range answers {
		s := b.of(a.part)
		if a.err != nil {
			s.row.state = "silent"
			continue
		}
		s.take(now, a)
	}
}

// of returns the entry of a process.
func (b *board) of(p part) *seen {
	for _, s := range b.all {
		if s.name == p.name && s.id == p.id {
			return s
		}
	}
	s := &seen{name: p.name, id: p.id, row: row{name: p.id}}
	b.all = append(b.all, s)
	return s
}

func (s *seen) take(now time.Time, a answer) {
	before, since := s.last, now.Sub(s.at).Seconds()
	if a.instance != s.instance {
		before, since = figures{}, 0
	}
	s.instance, s.at, s.last = a.instance, now, a.figures
	f := a.figures
	s.row = row{
		name: s.id, state: "there", p99: f.P99, waiting: f.Made - f.Answered - f.Failed, failed: f.Failed,
		sessions: fmt.Sprintf("%d with agents", f.Sessions),
	}
	if s.name == depotsName {
		s.row.name, s.row.state = s.id+"s", fmt.Sprint(a.agents)
		s.row.sessions = fmt.Sprintf("%d with replicas", f.Sessions)
	}
	s.row.answers = rate(f.Served-before.Served, since)
	s.row.calls = rate(f.Answered-before.Answered, since)
}

// rate returns n per second.
func rate(n int64, seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(n)/seconds)
}

// rows returns the table.
func (b *board) rows(away bool) (rows []row) {
	for _, s := range b.all {
		rows = append(rows, s.row)
	}
	nats := row{name: "NATS", state: "there"}
	if away {
		nats.state = "away"
	}
	return append(rows, nats)
}
