package main

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// failure returns the journal entry of a failed call. Repeatable determines whether it may have
// run: the audit verifies that.
func failure(call number, peer string, err error) entry {
	if asterisque.Repeatable(err) {
		return entry{refused, call, whyRefused(peer, err)}
	}
	return entry{failed, call, whyFailed(peer, err)}
}

// whyRefused returns the reason why a call has not run.
func whyRefused(peer string, err error) string {
	var outage *asterisque.NotConnectedError
	waited := errors.As(err, &outage)
	switch {
	case waited && isAny(outage.Why, natswire.ErrDisconnected, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrConnectionReconnecting):
		return "expired while NATS was away"
	case waited && isAny(outage.Why, natswire.ErrNobody, cluster.ErrNoMember):
		return fmt.Sprintf("expired while no %s was there", peer)
	case waited:
		return fmt.Sprintf("expired without a session with the %s", peer)
	case errors.Is(err, asterisque.ErrExpired):
		return "expired before it ran"
	case errors.Is(err, asterisque.ErrOverloaded):
		return fmt.Sprintf("the %s has too much to do", peer)
	case errors.Is(err, asterisque.ErrUnavailable):
		return fmt.Sprintf("the %s goes away", peer)
	}
	return codeOf(err)
}

// whyFailed returns the reason why a call may or may not have run.
func whyFailed(peer string, err error) string {
	switch {
	case isAny(err, natswire.ErrDisconnected):
		return "the way through NATS was lost"
	case wasLost(err):
		return fmt.Sprintf("the %s that ran it was lost", peer)
	case isAny(err, asterisque.ErrSessionClosed, asterisque.ErrUnavailable):
		return fmt.Sprintf("the session with the %s was lost", peer)
	case errors.Is(err, asterisque.ErrExpired):
		return fmt.Sprintf("expired at the %s", peer)
	}
	return codeOf(err)
}

// wasLost reports whether the error of a peer means that a durable call may or may not have run,
// since the replica that ran it was lost.
func wasLost(err error) bool {
	var abort *asterisque.Abort
	return errors.As(err, &abort) && abort.Remote && abort.Code == codec.Unavailable && abort.Ran == codec.MaybeRan
}

// codeOf returns the text for an unexpected error.
func codeOf(err error) string {
	var abort *asterisque.Abort
	if errors.As(err, &abort) {
		return abort.Code.String()
	}
	return err.Error()
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
