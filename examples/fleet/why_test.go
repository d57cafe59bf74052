package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// with returns the error of a call: whether the call ran, and the cause.
func with(a *asterisque.Abort, how codec.Ran, cause error) error {
	b := *a
	b.Ran, b.Cause = how, cause
	return &b
}

// saysLost returns a replica's error for a durable call that ran on another replica and was lost.
func saysLost() error {
	told := *asterisque.ErrUnavailable
	told.Remote, told.Ran = true, codec.MaybeRan
	return &told
}

// The reason of a failure includes whether the call may have run.
func TestWhy_MayHaveRun(t *testing.T) {
	away := func(why error) error { return &asterisque.NotConnectedError{Why: why} }
	for want, err := range map[string]error{
		"refused a 1 expired while NATS was away":              with(asterisque.ErrExpired, codec.NeverSent, away(natswire.ErrDisconnected)),
		"refused a 1 expired while no agent was there":         with(asterisque.ErrExpired, codec.NeverSent, away(cluster.ErrNoMember)),
		"refused a 1 expired without a session with the agent": with(asterisque.ErrExpired, codec.NeverSent, away(nil)),
		"refused a 1 expired before it ran":                    with(asterisque.ErrExpired, codec.NeverSent, nil),
		"refused a 1 the agent has too much to do":             with(asterisque.ErrOverloaded, codec.NeverSent, nil),
		"refused a 1 the agent goes away":                      with(asterisque.ErrUnavailable, codec.NeverSent, nil),
		"failed a 1 the agent that ran it was lost":            saysLost(),
		"failed a 1 expired at the agent":                      with(asterisque.ErrExpired, codec.MaybeRan, nil),
		"failed a 1 the session with the agent was lost":       with(asterisque.ErrSessionClosed, codec.MaybeRan, nil),
		"failed a 1 the way through NATS was lost":             with(asterisque.ErrSessionClosed, codec.MaybeRan, natswire.ErrDisconnected),
		"failed a 1 another agent has answered":                errors.New("another agent has answered"),
	} {
		require.Equal(t, want, failure(number{"a", 1}, "agent", err).String())
	}
}
