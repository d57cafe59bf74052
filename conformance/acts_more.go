package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// doCut closes the wire without a Close of the session.
func (p *player) doCut(context.Context, time.Duration, step) error {
	return p.link.wire.Close()
}

// doReconnect uses another wire: with true the next one of the same session, with false an
// unrelated one. The previous wire is closed if it is open.
func (p *player) doReconnect(ctx context.Context, within time.Duration, st step) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	session, _ := p.names["session"].([]byte)
	if st["reconnect"] == false {
		session = nil
		clear(p.parts)
	}
	l, err := p.peers.next(ctx, session)
	if err != nil {
		return err
	}
	p.link.close()
	p.link = l
	return nil
}

// doLet gives names to values, in the order of the names.
func (p *player) doLet(_ context.Context, _ time.Duration, st step) error {
	named, _ := st["let"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		v, err := value(named[name], p.names)
		if err != nil {
			return err
		}
		p.names[name] = v
	}
	return nil
}

// doRepeat plays steps the given number of times; the name i counts from 0.
func (p *player) doRepeat(ctx context.Context, _ time.Duration, st step) error {
	n, err := number(st["repeat"], p.names)
	if err != nil {
		return err
	}
	for i := range n {
		p.names["i"] = i
		if err := p.inner(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// doIf plays steps if a number is not 0.
func (p *player) doIf(ctx context.Context, _ time.Duration, st step) error {
	n, err := number(st["if"], p.names)
	if err != nil || n == 0 {
		return err
	}
	return p.inner(ctx, st)
}

func (p *player) inner(ctx context.Context, st step) error {
	var steps []step
	for _, s := range asList(st["steps"]) {
		m, _ := s.(map[string]any)
		steps = append(steps, m)
	}
	return p.steps(ctx, steps)
}

// doSequence plays a sequence of the suite.
func (p *player) doSequence(ctx context.Context, _ time.Duration, st step) error {
	name, _ := st["do"].(string)
	return p.steps(ctx, p.suite.Sequences[name])
}

// doCheck fails unless a number is other than 0.
func (p *player) doCheck(_ context.Context, _ time.Duration, st step) error {
	n, err := number(st["check"], p.names)
	if err == nil && n == 0 {
		err = fmt.Errorf("expected that %s", strings.TrimPrefix(fmt.Sprint(st["check"]), "="))
	}
	return err
}

// doWait waits for the given number of milliseconds. Frames that arrive meanwhile are left to the
// next step.
func (p *player) doWait(ctx context.Context, _ time.Duration, st step) error {
	ms, err := number(st["wait"], p.names)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
