package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFleet runs the whole program. Most of that is waiting, so all parts run at the same time.
func TestFleet(t *testing.T) {
	dir := private(t)
	t.Cleanup(func() { nothingIsLeft(t, dir) }) // behind all
	for name, test := range map[string]func(t *testing.T){
		"no call is lost or doubled": noCallIsLostOrDoubled,
		"an interrupt mends all":     anInterruptMendsAll,
		"the parts are programs":     thePartsArePrograms,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// The program itself fails when a call is lost or runs twice; noCallIsLostOrDoubled also checks the
// output.
func noCallIsLostOrDoubled(t *testing.T) {
	var out, warned bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-for", "4s", "-agents", "10"}, &out, &warned), &out)
	require.Empty(t, warned.String())
	for _, want := range []string{
		`3 replicas and 10 agents call each other by name, in 5 processes`,
		`2 of these agents can only dial out, to an exchange, and 2 reach the replicas at one address`,
		`kill -9 of orders-b`, `the cluster: orders-b lost`, `orders-b is started again`, `the cluster: orders-b joined`,
		`NATS is stopped`, `NATS is started again`, `(?s)(all call each other again, over 26 sessions with replicas.*){3}`,
		`(?s)wires are cut at random.*kill -9 of orders-c.*NATS is stopped.*no more wires are cut`,
		`(?m)^agents +10 +[\d-]+ +[\d-]+ +(\d+ms|[\d.]+s) +\d+ +\d+  \d+ with replicas$`,
		`(?m)^calls made +[1-9][\d,]* +[1-9][\d,]*$`, `(?m)^answered +[1-9][\d,]* +[1-9][\d,]*$`,
		`(?m)^answered through the exchange +[1-9][\d,]* +[1-9][\d,]*$`, `(?m)^wires cut +[1-9][\d,]*$`,
		`(?m)^sessions resumed with the exchange +\d+$`,
		`(?m)^doubled +0 +0$`, `(?m)^lost +0 +0$`, `(?m)^ran, though .* did not +0 +0$`,
	} {
		require.Regexp(t, want, out.String())
	}
	for _, row := range regexp.MustCompile(`(?m)^agents .* (\d+) with replicas$`).FindAllStringSubmatch(out.String(), -1) {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		require.LessOrEqual(t, n, 26, "more than one session of two nodes")
	}
}

// alarm runs a function once a text is written to it.
type alarm struct {
	bytes.Buffer
	text string
	do   func()
}

func (a *alarm) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(a.text)) {
		a.do()
	}
	return a.Buffer.Write(b)
}

// anInterruptMendsAll interrupts the program in the middle of a disturbance: it audits the calls
// then.
func anInterruptMendsAll(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out := &alarm{text: "kill -9 of orders-b", do: interrupt}
	require.ErrorIs(t, run(ctx, []string{"-for", "5s", "-agents", "3", "-replicas", "2"}, out, io.Discard), context.Canceled)
	require.Regexp(t, `(?s)orders-b is started again.*all call each other again.*lost +0 +0\n`, out.String())
}

// An interrupt during the start leaves nothing behind.
func TestFleet_StartInterrupted(t *testing.T) {
	dir := private(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := &alarm{text: "NATS is in this process", do: interrupt}
	require.ErrorIs(t, run(ctx, nil, out, io.Discard), context.Canceled)
	nothingIsLeft(t, dir)
}
