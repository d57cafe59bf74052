package natswire_test

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// A restart of the server ends the wires, and the listener continues.
func TestOutage_ServerRestarted(t *testing.T) {
	s := broker(t)
	ln, err := natswire.Transport{Options: []nats.Option{nats.ReconnectWait(1)}}.Listen(t.Context(), parsed(t, s.ClientURL()+"/name"), wire.Options{})
	require.NoError(t, err)
	listening(t, ln)
	here, there := pairAt(t, ln, wire.Options{})
	carries(t, here, there, "before")

	again := restart(s)
	for _, w := range []wire.Wire{here, there} {
		require.ErrorIs(t, readError(w), natswire.ErrDisconnected)
		require.ErrorIs(t, w.WriteFrames([][]byte{{1}}), natswire.ErrDisconnected)
	}
	broker(t, again)
	here = dialUntilThere(t, ln.URL())
	there, err = ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	carries(t, here, there, "after")
}

// dialUntilThere dials until the listener has reconnected.
func dialUntilThere(t *testing.T, url string) (w wire.Wire) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		w, err = wire.Dial(t.Context(), url, wire.Options{})
		require.True(t, err == nil || errors.Is(err, natswire.ErrNobody), "%v", err)
		return err == nil
	}, hangs, 1)
	t.Cleanup(func() { w.Close() })
	return w
}

// The loss of a connection of the application ends its wires.
func TestOutage_ConnectionLost(t *testing.T) {
	s := broker(t)
	nc := connectTo(t, s, nats.ReconnectWait(1))
	ln, err := natswire.Listen(t.Context(), nc, "name", nil)
	require.NoError(t, err)
	listening(t, ln)
	here, err := wire.Dial(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.NoError(t, err)
	defer here.Close()
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	require.NoError(t, nc.ForceReconnect())
	require.ErrorIs(t, readError(there), natswire.ErrDisconnected)
	require.Error(t, readError(here), "reported when the connection is back")
	again := dialUntilThere(t, s.ClientURL()+"/name")
	there, err = ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	carries(t, again, there, "the listener continues")
}

// Closing a connection of the application ends its wires and its listener.
func TestOutage_ConnectionClosed(t *testing.T) {
	s := broker(t)
	nc := connectTo(t, s)
	ln, err := natswire.Listen(t.Context(), nc, "name", nil)
	require.NoError(t, err)
	listening(t, ln)
	w, err := natswire.Dial(t.Context(), nc, "name", nil)
	require.NoError(t, err)
	defer w.Close()
	nc.Close()
	require.ErrorIs(t, readError(w), natswire.ErrDisconnected)
	for err == nil { // the Wire may have been waiting
		_, err = ln.Accept()
	}
	require.ErrorIs(t, err, natswire.ErrDisconnected)
	require.NotErrorIs(t, err, net.ErrClosed)
	_, err = natswire.Dial(t.Context(), nc, "name", nil)
	require.Error(t, err)
	_, err = natswire.Listen(t.Context(), nc, "name", nil)
	require.Error(t, err)
}

// Messages that NATS drops end the Wire.
func TestOutage_MessagesDropped(t *testing.T) {
	s := broker(t)
	ln, err := natswire.Listen(t.Context(), connectTo(t, s, nats.CustomInboxPrefix("lossy")), "name", nil)
	require.NoError(t, err)
	listening(t, ln)
	here, err := natswire.Dial(t.Context(), connectTo(t, s), "name", nil)
	require.NoError(t, err)
	defer here.Close()
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	carries(t, here, there, "before")

	// as if the accepting side were a slow consumer
	require.NoError(t, s.GlobalAccount().AddWeightedMappings("lossy.>", server.NewMapDest("lossy.>", 50)))
	for here.WriteFrames([][]byte{{1}}) == nil { // until the loss shows
	}
	var lost *natswire.SequenceError
	require.ErrorAs(t, readError(there), &lost)
	require.Greater(t, lost.Got, lost.Want)
	require.ErrorContains(t, lost, "were lost")
	err = readError(here)
	require.ErrorIs(t, err, natswire.ErrPeerFailed)
	require.ErrorContains(t, err, "were lost")
}

// A server that drops a slow client ends the wires.
func TestOutage_SlowClient(t *testing.T) {
	// the server disconnects a client with more unread bytes
	s := broker(t, func(o *server.Options) { o.MaxPayload, o.MaxPending = 512, 512 })
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	here, there := pairAt(t, ln, wire.Options{})
	go func() { // ends with the Wire
		for here.WriteFrames([][]byte{make([]byte, largest)}) == nil {
		}
	}()
	err := readError(there)
	require.NotErrorIs(t, err, io.EOF)
	require.Error(t, err)
}

// A link's own connection is closed with the last Wire.
func TestLink_OwnConnection(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	here, there := pairAt(t, ln, wire.Options{})
	require.Equal(t, 2, s.NumClients())
	require.NoError(t, ln.Close())
	carries(t, here, there, "the connection of the listener is that of its wires")
	require.NoError(t, here.Close())
	require.Equal(t, io.EOF, readError(there))
	require.NoError(t, there.Close())
	require.Eventually(t, func() bool { return s.NumClients() == 0 }, hangs, 1)
}
