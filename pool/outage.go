package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque"
)

// inVain returns the error of a call that no server accepted before its context ended.
func (p *Pool) inVain(ctx context.Context) error {
	return unsent(endOf(ctx), p.outage())
}

// endOf returns the error of a call that waited for a server until its context ended.
func endOf(ctx context.Context) *asterisque.Abort {
	a := *asterisque.ErrExpired
	if errors.Is(ctx.Err(), context.Canceled) {
		a = *asterisque.ErrCanceled
	}
	a.Message = fmt.Sprintf("%v, waiting for a server of the pool", context.Cause(ctx))
	return &a
}

// unsent returns err as the error of a call that was never sent. Its cause is why, unless that is
// nil.
func unsent(err error, why *asterisque.NotConnectedError) error {
	var a *asterisque.Abort
	if !errors.As(err, &a) {
		return err
	}
	own := *a
	own.Ran = neverSent
	if why != nil {
		own.Cause = why
	}
	return &own
}

// outage describes why no server takes calls: since the last session was lost, until the next
// attempt, with some causes. It returns nil if a server takes calls.
func (p *Pool) outage() *asterisque.NotConnectedError {
	p.members.mu.Lock()
	n, since, failure := len(p.members.urls), p.members.since, p.members.failure
	p.members.mu.Unlock()
	o := &asterisque.NotConnectedError{Peer: fmt.Sprintf("any of the %d servers of the pool", n), Why: failure}
	servers := p.spread.Load().servers
	if len(servers) == 0 {
		o.Since = since
		return o
	}
	var reasons []error
	if failure != nil {
		reasons = append(reasons, failure)
	}
	for _, s := range servers {
		one := s.conn.Outage()
		switch {
		case one == nil && s.unwell.Load():
			reasons = append(reasons, asterisque.ErrUnavailable.Withf("%s says that it does not serve", s.name()))
			continue
		case one == nil:
			return nil
		}
		if one.Since.After(o.Since) {
			o.Since = one.Since
		}
		if o.Next.IsZero() || !one.Next.IsZero() && one.Next.Before(o.Next) {
			o.Next = one.Next
		}
		if one.Why != nil {
			reasons = append(reasons, fmt.Errorf("%s: %w", one.Peer, one.Why))
		}
	}
	if o.Since.IsZero() {
		o.Since = time.Now()
	}
	o.Why = few(reasons)
	return o
}

// mostReasons is the maximum number of causes in a text.
const mostReasons = 3

// few joins errors, at most mostReasons in full.
func few(errs []error) error {
	if more := len(errs) - mostReasons; more > 0 {
		errs = append(errs[:mostReasons:mostReasons], fmt.Errorf("and %d more", more))
	}
	return errorList(errs).orNil()
}

// errorList is a list of errors, printed in one line.
type errorList []error

func (l errorList) orNil() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

func (l errorList) Error() string {
	text := ""
	for i, err := range l {
		if i > 0 {
			text += "; "
		}
		text += err.Error()
	}
	return text
}

func (l errorList) Unwrap() []error { return l }
