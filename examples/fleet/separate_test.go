package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// start runs a part until stop is called, and waits until the part prints a line. stop returns the
// error of the part.
func start(t *testing.T, line string, args ...string) (said []string, stop func() error) {
	ctx, interrupt := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		err := run(ctx, args, w, io.Discard)
		w.Close()
		ended <- err
	}()
	in := bufio.NewReader(r)
	first, err := in.ReadString('\n')
	require.NoError(t, err, args)
	said = regexp.MustCompile(line).FindStringSubmatch(first)
	require.NotNil(t, said, first)
	return said, func() error {
		interrupt()
		io.Copy(io.Discard, in)
		return <-ended
	}
}

func thePartsArePrograms(t *testing.T) {
	said, stopNATS := start(t, `NATS is at (.*)`, "-part", "nats")
	nats := said[1]
	at, err := freeAddrs(1)
	require.NoError(t, err)
	_, stopReplica := start(t, `orders-x takes orders`, "-part", "replica", "-nats", nats, "-id", "orders-x", "-listen", at[0])
	said, stopExchange := start(t, `the exchange is at (.*)`, "-part", "exchange", "-nats", nats, "-secret", "open")
	_, stopAgents := start(t, `3 agents are there, berlin-000 to berlin-002`, "-part", "agents", "-nats", nats, "-id", "berlin", "-agents", "3",
		"-exchange", said[1], "-secret", "open", "-door", "tcp://"+at[0])
	for range 2 { // calls resume after the audit
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-part", "control", "-nats", nats, "-for", "2s"}, &out, io.Discard), &out)
		require.Regexp(t, `(?m)^calls made +[1-9][\d,]* +[1-9][\d,]*$`, out.String())
		require.Regexp(t, `(?m)^answered through the exchange +[1-9][\d,]* +[1-9][\d,]*$`, out.String())
		require.Regexp(t, `(?m)^lost +0 +0$`, out.String())
	}
	require.NoError(t, stopAgents())
	require.NoError(t, stopExchange())
	require.NoError(t, stopReplica())
	require.NoError(t, stopNATS())
}

// The exchange admits no peer without the secret.
func TestExchange_NoSecret(t *testing.T) {
	said, stopNATS := start(t, `NATS is at (.*)`, "-part", "nats")
	nats := said[1]
	said, stopExchange := start(t, `the exchange is at (.*)`, "-part", "exchange", "-nats", nats, "-secret", "open")
	agents := []string{"-part", "agents", "-nats", nats, "-agents", "1", "-exchange", said[1], "-secret", "sesame"}
	require.ErrorIs(t, run(t.Context(), agents, io.Discard, io.Discard), asterisque.ErrUnauthorized)
	require.NoError(t, stopExchange())
	require.NoError(t, stopNATS())
}

// A replica with the same ID takes the place of an earlier one.
func TestReplica_Replaced(t *testing.T) {
	said, stopNATS := start(t, `NATS is at (.*)`, "-part", "nats")
	replica := []string{"-part", "replica", "-nats", said[1], "-id", "orders-x"}
	_, stopFirst := start(t, `orders-x takes orders`, replica...)
	_, stopSecond := start(t, `orders-x takes orders`, replica...)
	require.NoError(t, stopSecond())
	stopFirst() // which may have learned it by now
	require.NoError(t, stopNATS())
}
