package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
)

// An agent that reconnects is reached on its new session.
func TestRoster_Reconnected(t *testing.T) {
	r := newRoster()
	over := make(chan struct{}, 2)
	server := asterisque.NewNode(asterisque.WithHooks(r.hooks()), // called before the hooks below
		asterisque.WithHooks(asterisque.Hooks{SessionEnded: func(*asterisque.Session, error) { over <- struct{}{} }}),
		asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return &asterisque.Grant{Subject: "agent-01"}, nil
		}}))
	agent := asterisque.NewNode()
	t.Cleanup(func() { agent.Close(); server.Close() })
	reached := func(s *asterisque.Session) {
		require.Eventually(t, func() bool { return r.session("agent-01") == s }, 2*time.Minute, time.Millisecond)
	}
	_, first := asterisquetest.ConnectNodes(t, agent, server)
	reached(first)
	_, second := asterisquetest.ConnectNodes(t, agent, server)
	reached(second)
	require.Equal(t, []string{"agent-01"}, r.agents())
	first.Close()
	<-over
	require.Same(t, second, r.session("agent-01"), "the end of the first one is not that of the second")
	second.Close()
	<-over
	require.Nil(t, r.session("agent-01"))
	require.Zero(t, r.len())
}
