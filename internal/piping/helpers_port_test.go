package piping_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// port is a session that records the calls of a pipe.
type port struct {
	mu      sync.Mutex
	sent    []string // Blocks, "end", "close", "abort" and "abandon"
	taken   int
	news    int   // number of announcements
	watched int   // number of calls of Watch
	refuse  error // what Send and Post return
	lost    []any // arguments of Misbehaved
}

func (p *port) note(s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return p.refuse
	}
	p.sent = append(p.sent, s)
	return nil
}

func (p *port) Send(_ context.Context, b piping.Outgoing) error { return p.note(string(b.Payload)) }

func (p *port) Post(b piping.Outgoing) (limits.State, error) {
	return limits.Congested, p.note(string(b.Payload))
}

func (p *port) Expire(*piping.Outgoing) { p.note("expired") }

func (p *port) Thin(*piping.Outgoing) bool { return false }

func (p *port) CloseSend() error { return p.note("end") }

func (p *port) Outlive(func()) func() bool { return nil }

func (p *port) MaxBlock() int { return 1 << 20 }

func (p *port) Owns(context.Context) bool { return false }

func (p *port) Misbehaved(v any) *codec.Abort {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = append(p.lost, v)
	return codec.ErrPanicked.Withf("lost: %v", v)
}

func (p *port) Stop(bool) { p.note("stop") }

func (p *port) Announce() { p.mu.Lock(); p.news++; p.mu.Unlock() }

func (p *port) Abandon(whole int) { p.note(fmt.Sprint("abandon ", whole)) }

func (p *port) Watch() { p.mu.Lock(); p.watched++; p.mu.Unlock() }

func (p *port) Skip(stays uint64) { p.note(fmt.Sprint("skip ", stays)) }

func (p *port) Close(result []byte, abort *codec.Abort) {
	if abort != nil {
		p.note("abort " + abort.Code.String())
	} else {
		p.note("close " + string(result))
	}
}

// Taken and Reserve implement piping.Ledger.
func (p *port) Taken(messages, _ int) { p.mu.Lock(); p.taken += messages; p.mu.Unlock() }

func (p *port) Reserve(int) bool { return false }

// newPipe returns a pipe in its two views, and its port. Limits that c does not set are unlimited.
func newPipe(c piping.Config) (*pipe.Pipe, *piping.End, *port) {
	p, port := new(pipe.Pipe), new(port)
	c.Port = port
	if c.Terms == nil {
		c.Terms = new(piping.Terms)
	}
	c.Terms.Overhead, c.Terms.PeerOverhead, c.Terms.Early, c.Terms.PeerEarly = overhead, overhead, early, early
	c.Terms.Ledger = port
	if c.SendLimit == 0 {
		c.SendLimit = piping.Unlimited
	}
	if c.Terms.Budget == nil {
		c.Granted = piping.Unlimited
	}
	(*piping.End)(p).Init(c)
	return p, (*piping.End)(p), port
}

// block returns a received Block.
func block(payload string) piping.Block { return piping.NewBlock([]byte(payload), nil, 0, time.Time{}) }

// sized returns a received Block of n bytes.
func sized(n int) piping.Block { return piping.NewBlock(make([]byte, n), nil, 0, time.Time{}) }

// told returns the pending Controls of a pipe.
func told(end *piping.End) (list []message.Control) {
	end.Controls(0, func(c message.Control) { list = append(list, c) })
	return list
}

var background = context.Background()

// running returns the pipe of a handler that has begun, with a window from room.
func running(t *testing.T, room *flow.Budget) (*pipe.Pipe, *piping.End, *port) {
	t.Helper()
	p, end, port := newPipe(piping.Config{Granted: early, Terms: &piping.Terms{Budget: room, Usual: 512 << 10}})
	var h flow.Window
	room.Begin(&h)
	end.BeginHandler(h)
	return p, end, port
}

// contextual sends a Block with a time limit.
func contextual(p *pipe.Pipe, d time.Duration) error {
	ctx, cancel := context.WithTimeout(background, d)
	defer cancel()
	return p.Send(ctx, []byte("0"))
}
