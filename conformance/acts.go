package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// stepAction performs a step. within is the time limit for the actions of the peer.
type stepAction func(p *player, ctx context.Context, within time.Duration, st step) error

// acts are the steps of spec/scenarios.md, by the key that names them. It is filled by init, since
// some have steps inside.
var acts map[string]stepAction

func init() {
	acts = map[string]stepAction{
		"send": (*player).doSend, "expect": (*player).doExpect, "expect_one_of": (*player).doOneOf, "expect_all": (*player).doAll,
		"until": (*player).doUntil, "closes": (*player).doCloses, "ends": (*player).doEnds, "alive": (*player).doAlive,
		"silent": (*player).doSilent, "cut": (*player).doCut, "reconnect": (*player).doReconnect, "sync": (*player).doSync,
		"let": (*player).doLet, "repeat": (*player).doRepeat, "if": (*player).doIf, "do": (*player).doSequence, "check": (*player).doCheck, "wait": (*player).doWait,
	}
}

func (p *player) doSend(ctx context.Context, within time.Duration, st step) error {
	v, err := value(st["send"], p.names)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = p.send(ctx, v)
	if st["or_ends"] == true {
		return nil // the peer may close before it has read all
	}
	return err
}

// doSync sends the player's Sync, with other fields if there are some.
func (p *player) doSync(ctx context.Context, within time.Duration, st step) error {
	fields, _ := st["sync"].(map[string]any)
	v, err := p.changedSync(fields)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return p.send(ctx, v)
}

func (p *player) changedSync(changes map[string]any) (any, error) {
	version, fields := any(int64(1)), map[any]any{}
	for k, v := range p.names["sync"].(map[any]any) {
		fields[k] = v
	}
	for k, c := range changes {
		v, err := value(c, p.names)
		if err != nil {
			return nil, err
		}
		if k == "version" {
			version = v
			continue
		}
		m, err := value(map[string]any{k: c}, p.names)
		if err != nil {
			return nil, err
		}
		for key := range m.(map[any]any) {
			fields[key] = v
			if v == nil {
				delete(fields, key)
			}
		}
	}
	return []any{int64(0), int64(1), version, fields}, nil
}

func (p *player) doExpect(ctx context.Context, within time.Duration, st step) error {
	return p.await(ctx, within, []any{st["expect"]}, false)
}

func (p *player) doOneOf(ctx context.Context, within time.Duration, st step) error {
	return p.await(ctx, within, asList(st["expect_one_of"]), false)
}

func (p *player) doUntil(ctx context.Context, within time.Duration, st step) error {
	return p.await(ctx, within, []any{st["until"]}, true)
}

// await waits for a frame that matches one of the patterns. Any other frame is a failure, unless it
// is tolerated or anything is set.
func (p *player) await(ctx context.Context, within time.Duration, patterns []any, anything bool) error {
	_, err := p.awaitAny(ctx, within, patterns, anything)
	return err
}

// awaitAny is await that returns the index of the pattern.
//
//nolint:gocognit // one loop for frames, parts and tolerated frames
func (p *player) awaitAny(ctx context.Context, within time.Duration, patterns []any, anything bool) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	wanted := show(patterns)
	if len(patterns) == 1 {
		wanted = show(patterns[0])
	}
	for {
		list, err := p.read(ctx)
		if err != nil {
			return 0, late(err, wanted)
		}
		if i, err := p.fitting(patterns, list); i >= 0 || err != nil {
			return i, err
		}
		if kind(list) == "4" {
			message, fits, err := p.takePart(list)
			if fits && message == nil {
				continue
			}
			if fits { // it counts as the completed message
				list = message
				if i, err := p.fitting(patterns, list); i >= 0 || err != nil {
					return i, err
				}
			}
			if err != nil {
				return 0, err
			}
		}
		if ok, err := p.tolerate(ctx, list); err != nil || !ok && !anything {
			return 0, errors.Join(fmt.Errorf("expected %s; %s came", wanted, show(list)), err)
		}
	}
}

// fitting returns the index of the pattern that a message matches, or -1.
func (p *player) fitting(patterns []any, list []any) (int, error) {
	for i, pattern := range patterns {
		bound := map[string]any{}
		fits, err := match(pattern, list, p.names, bound)
		if err != nil {
			return -1, err
		}
		if fits {
			p.bind(bound)
			return i, nil
		}
	}
	return -1, nil
}

func (p *player) bind(bound map[string]any) {
	for k, v := range bound {
		p.names[k] = v
	}
}

// doAll waits for a frame for each pattern, in any order.
func (p *player) doAll(ctx context.Context, within time.Duration, st step) error {
	rest := append([]any(nil), asList(st["expect_all"])...)
	for len(rest) > 0 {
		i, err := p.awaitAny(ctx, within, rest, false)
		if err != nil {
			return err
		}
		rest = append(rest[:i], rest[i+1:]...)
	}
	return nil
}

// doCloses waits for the Close of the session, with one of the codes. Frames before it are ignored.
func (p *player) doCloses(ctx context.Context, within time.Duration, st step) error {
	codes := asList(st["closes"])
	if codes == nil {
		codes = []any{st["closes"]}
	}
	wanted := "[0, 7, " + strings.Trim(show(codes), "[]") + ", _]"
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		list, err := p.read(ctx)
		if err != nil && st["or_ends"] == true && !errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return late(err, wanted)
		}
		if kind(list) != "0 7" {
			continue
		}
		fits, err := match([]any{int64(0), int64(7), map[string]any{"among": codes}, "_"}, list, p.names, map[string]any{})
		if err == nil && !fits {
			err = fmt.Errorf("expected %s; %s came", wanted, show(list))
		}
		return err
	}
}

// doEnds waits for the end of the wire, without a Close of the session.
func (p *player) doEnds(ctx context.Context, within time.Duration, _ step) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		list, err := p.read(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return late(err, "the end of the wire")
		}
		if err != nil {
			return nil
		}
		if ok, err := p.tolerate(ctx, list); err == nil && !ok {
			return fmt.Errorf("expected the end of the wire; %s came", show(list))
		}
	}
}

// doAlive sends a Ping, and waits for its Pong. Before it, only frames that are always allowed may
// arrive.
func (p *player) doAlive(ctx context.Context, within time.Duration, _ step) error {
	p.pings++
	n := 900_000 + p.pings
	if err := p.send(ctx, []any{int64(0), int64(2), n}); err != nil {
		return err
	}
	return p.await(ctx, within, []any{[]any{int64(0), int64(3), fmt.Sprintf("=%d", n)}}, false)
}

// doSilent waits for the given number of milliseconds. Only frames that are always allowed may
// arrive.
func (p *player) doSilent(ctx context.Context, _ time.Duration, st step) error {
	ms, err := number(st["silent"], p.names)
	if err != nil {
		return err
	}
	quiet, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	defer cancel()
	for {
		list, err := p.read(quiet)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("expected nothing; %w", err)
		}
		if ok, err := p.tolerate(ctx, list); err != nil || !ok {
			return errors.Join(fmt.Errorf("expected nothing; %s came", show(list)), err)
		}
	}
}
