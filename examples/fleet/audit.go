package main

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
)

// audited is a process that is being audited.
type audited struct {
	name, id string // these are fixed
	call     *asterisque.StreamCall[struct{}, []string, int]
	lines    []string
}

// auditAll pauses the calls of all processes, gathers their journals, and resumes the calls.
func auditAll(ctx context.Context, parts []part) (*books, error) {
	all := make([]*audited, len(parts))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, p := range parts {
		call, err := audit.Open(ctx, p.at, struct{}{})
		if err != nil {
			return nil, fmt.Errorf("the audit of %s: %w", p.id, err)
		}
		all[i] = &audited{name: p.name, id: p.id, call: call}
	}
	for _, step := range []func(*audited, context.Context) error{(*audited).quiet, (*audited).gather, (*audited).end} {
		var each errgroup.Group
		for _, a := range all {
			each.Go(func() error {
				if err := step(a, ctx); err != nil {
					return fmt.Errorf("the audit of %s: %w", a.id, err)
				}
				return nil
			})
		}
		if err := each.Wait(); err != nil {
			return nil, err
		}
	}
	b := newBooks()
	for _, a := range all {
		for _, line := range a.lines {
			if err := b.take(a.name, line); err != nil {
				return nil, fmt.Errorf("the journal of %s: %w", a.id, err)
			}
		}
	}
	return b, nil
}

// quiet waits until the calls of the process have ended.
func (a *audited) quiet(ctx context.Context) error {
	_, err := a.call.Recv(ctx)
	return err
}

// gather receives the journal.
func (a *audited) gather(ctx context.Context) error {
	if err := a.call.Send(ctx, struct{}{}); err != nil {
		return err
	}
	for {
		some, err := a.call.Recv(ctx)
		switch {
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case len(some) == 0:
			return nil
		}
		a.lines = append(a.lines, some...)
	}
}

// end resumes the calls of the process.
func (a *audited) end(ctx context.Context) error {
	if err := a.call.CloseSend(); err != nil {
		return err
	}
	n, err := a.call.Result(ctx)
	if err == nil && n != len(a.lines) {
		err = fmt.Errorf("%d of %d lines of the journal have come", len(a.lines), n)
	}
	return err
}
