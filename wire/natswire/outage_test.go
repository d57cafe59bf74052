package natswire

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// A restart of the server ends the wires, and the listener continues.
func TestOutage_ServerRestarted(t *testing.T) {
	s := broker(t)
	ln, err := Transport{Options: []nats.Option{nats.ReconnectWait(1)}}.Listen(t.Context(), parsed(t, s.ClientURL()+"/name"), wire.Options{})
	require.NoError(t, err)
	listening(t, ln)
	here, there := pairAt(t, ln, wire.Options{})
	carries(t, here, there, "before")

	again := restart(s)
	for _, w := range []wire.Wire{here, there} {
		require.ErrorIs(t, readError(w), ErrDisconnected)
		require.ErrorIs(t, w.WriteFrames([][]byte{{1}}), ErrDisconnected)
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
		require.True(t, err == nil || errors.Is(err, ErrNobody), "%v", err)
		return err == nil
	}, hangs, 1)
	t.Cleanup(func() { w.Close() })
	return w
}

// The loss of a connection of the application ends its wires.
func TestOutage_ConnectionLost(t *testing.T) {
	s := broker(t)
	nc := connectTo(t, s, nats.ReconnectWait(1))
	ln, err := Listen(t.Context(), nc, "name", nil)
	require.NoError(t, err)
	listening(t, ln)
	here, err := wire.Dial(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.NoError(t, err)
	defer here.Close()
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	require.NoError(t, nc.ForceReconnect())
	require.ErrorIs(t, readError(there), ErrDisconnected)
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
	ln, err := Listen(t.Context(), nc, "name", nil)
	require.NoError(t, err)
	listening(t, ln)
	w, err := Dial(t.Context(), nc, "name", nil)
	require.NoError(t, err)
	defer w.Close()
	nc.Close()
	require.ErrorIs(t, readError(w), ErrDisconnected)
	for err == nil { // the Wire may have been waiting
		_, err = ln.Accept()
	}
	require.ErrorIs(t, err, ErrDisconnected)
	require.NotErrorIs(t, err, net.ErrClosed)
	_, err = Dial(t.Context(), nc, "name", nil)
	require.Error(t, err)
	_, err = Listen(t.Context(), nc, "name", nil)
	require.Error(t, err)
}

// The end of a peer's connection is detected.
func TestPeer_ConnectionGone(t *testing.T) {
	s := broker(t)
	answering(t, connectTo(t, s), "name", func(r *raw) { r.welcome() })
	dying := connectTo(t, s)
	answering(t, dying, "dying", func(r *raw) { r.welcome() })
	nc := connectTo(t, s)
	w, err := dial(t.Context(), hasty(nc), "dying", nil)
	require.NoError(t, err)
	defer w.Close()
	dying.Close()
	require.ErrorIs(t, readError(w), ErrPeerGone)
}

// A silent peer is considered lost.
func TestPeer_Silent(t *testing.T) {
	s := broker(t)
	answering(t, connectTo(t, s), "name", func(r *raw) { r.welcome() })
	w, err := dial(t.Context(), hasty(connectTo(t, s)), "name", nil)
	require.NoError(t, err)
	defer w.Close()
	err = readError(w)
	require.ErrorIs(t, err, ErrPeerGone)
	require.ErrorContains(t, err, "nothing was heard from it for 30ms")
}

// An idle Wire sends keepalives.
func TestBeat_IdleWire(t *testing.T) {
	s := broker(t)
	said := make(chan *raw, 1)
	answering(t, connectTo(t, s), "name", func(r *raw) {
		r.welcome()
		said <- r
	})
	w, err := dial(t.Context(), hasty(connectTo(t, s)), "name", nil)
	require.NoError(t, err)
	defer w.Close()
	r := <-said
	r.t = t
	r.until(kindState)
	r.sub.Unsubscribe()
}

// A peer that sends keepalives is kept.
func TestBeat_KeepsPeer(t *testing.T) {
	s := broker(t)
	said := make(chan *raw, 1)
	answering(t, connectTo(t, s), "name", func(r *raw) {
		r.welcome()
		said <- r
	})
	w, err := dial(t.Context(), newLink(connectTo(t, s), false), "name", nil)
	require.NoError(t, err)
	defer w.Close()
	r := <-said
	r.t = t
	c := w.(*plainWire).conn
	for range 2 * silence {
		heard := c.hears.Load()
		c.beat() // as its timer does, after seconds
		r.until(kindState)
		r.send(kindState, "")
		require.Eventually(t, func() bool { return c.hears.Load() > heard }, hangs, time.Millisecond)
	}
	require.True(t, c.alive())
	r.sub.Unsubscribe()
}

// Messages lost by a slow consumer end the Wire.
func TestOutage_SlowConsumer(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	here, there := pairAt(t, ln, wire.Options{})
	carries(t, here, there, "before")

	c := there.(*plainWire).conn
	require.NoError(t, c.sub.SetPendingLimits(1, -1))
	c.credit.mu.Lock() // receive waits for it, and package nats drops what it has no place for
	for range 100 {
		require.NoError(t, here.WriteFrames([][]byte{{1}}))
	}
	require.Eventually(t, func() bool { n, _ := c.sub.Dropped(); return n > 0 }, hangs, 1)
	c.credit.mu.Unlock()
	require.NoError(t, c.sub.SetPendingLimits(-1, -1))
	here.WriteFrames([][]byte{{1}}) // with which the loss shows

	var lost *SequenceError
	require.ErrorAs(t, readError(there), &lost)
	require.Greater(t, lost.Got, lost.Want)
	require.ErrorContains(t, lost, "were lost")
	err := readError(here)
	require.ErrorIs(t, err, ErrPeerFailed)
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
