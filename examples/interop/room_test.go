package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/flowtest"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/stdiowire"
)

// roomKinds are the wires that the tests of the root package do not cover.
var roomKinds = map[string]flowtest.Kind{
	"ws":    flowtest.URL("ws://127.0.0.1:0/room"),
	"quic":  flowtest.URL("quic://127.0.0.1:0"),
	"nats":  throughNATS,
	"stdio": throughAChild,
}

// throughNATS returns wires over a NATS server of their own.
func throughNATS(t testing.TB) flowtest.Wires {
	url, end, err := localURL("nats", "")
	require.NoError(t, err)
	t.Cleanup(end)
	return flowtest.URL(url)(t)
}

// Honest programs never block each other forever.
func TestRoom_NeverStandsStill(t *testing.T) {
	if race.Enabled && !*soak {
		t.Skip("it transfers much data with the same goroutines as other tests: with the race detector only with -soak")
	}
	extent := flowtest.Brief
	if *soak {
		extent = flowtest.Soak
	}
	for name, wires := range roomKinds {
		t.Run(name, func(t *testing.T) { flowtest.Run(t, wires, extent) })
	}
}

// Honest programs never block each other forever while their wires are cut.
func TestRoom_WiresCut(t *testing.T) {
	if !*soak {
		t.Skip("takes minutes: see -soak")
	}
	for name, wires := range roomKinds {
		t.Run(name, func(t *testing.T) { flowtest.RunCut(t, wires, flowtest.Soak) })
	}
}

// relayTo names the environment variable that makes a child process of this program relay frames to
// the address in the variable.
const relayTo = "ASTERISQUE_TEST_RELAY_TO"

// throughAChild has wires over the standard input and output of a child, which relays frames, over
// TCP, to the Listener.
func throughAChild(t testing.TB) flowtest.Wires {
	l, err := wire.Listen(context.Background(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	quiet := stdiowire.WithLogger(slog.New(slog.DiscardHandler))
	dial := func(context.Context) (wire.Wire, error) {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), relayTo+"="+strings.TrimPrefix(l.URL(), "tcp://"))
		return stdiowire.Start(child, quiet, stdiowire.WithGrace(time.Second))
	}
	return flowtest.Wires{Listener: l, Dial: dial}
}

func init() {
	addr, ok := os.LookupEnv(relayTo)
	if !ok {
		return
	}
	if err := relay("tcp://" + addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// relay forwards frames between the parent and a listener at url, until one of them ends.
func relay(url string) error {
	parent, err := stdiowire.Stdio()
	if err != nil {
		return err
	}
	there, err := wire.Dial(context.Background(), url, wire.Options{})
	if err != nil {
		return err
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]wire.Wire{{parent, there}, {there, parent}} {
		go func() { // ends with the process
			passOn(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
	parent.Close()
	there.Close()
	return nil
}

func passOn(from, to wire.Wire) {
	for {
		f, err := from.ReadFrame(1 << 30)
		if err != nil {
			return
		}
		if err := to.WriteFrames([][]byte{f}); err != nil {
			return
		}
	}
}
