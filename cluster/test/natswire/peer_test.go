package natswire_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	brokers "github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

const (
	beat    = 5 * time.Second // between keepalives
	silence = 3               // keepalives without a message after which a peer is lost
)

// inBubble runs a test in which keepalives take no real time. connect returns a connection to its
// NATS server.
func inBubble(t *testing.T, f func(t *testing.T, connect func() *nats.Conn)) {
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, brokers.Config{})
		f(t, func() *nats.Conn { return natstest.Connect(t, b) })
	})
}

// The next keepalive detects the end of a peer's connection.
func TestPeer_ConnectionGone(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func() *nats.Conn) {
		dying := connect()
		answering(t, dying, "dying", func(r *raw) { r.welcome() })
		w, err := natswire.Dial(t.Context(), connect(), "dying", nil)
		require.NoError(t, err)
		defer w.Close()
		dying.Close()
		began := time.Now()
		require.ErrorIs(t, readError(w), natswire.ErrPeerGone)
		require.LessOrEqual(t, time.Since(began), beat)
	})
}

// The next keepalive detects a listener that vanishes after its answer.
func TestPeer_GoneAfterAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func() *nats.Conn) {
		answering(t, connect(), "name", func(r *raw) {
			r.sub.Unsubscribe()
			natstest.Flush(r.nc)
			r.welcome()
		})
		w, err := natswire.Dial(t.Context(), connect(), "name", nil)
		require.NoError(t, err)
		defer w.Close()
		require.ErrorIs(t, readError(w), natswire.ErrPeerGone)
	})
}

// A silent peer is considered lost.
func TestPeer_Silent(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func() *nats.Conn) {
		answering(t, connect(), "name", func(r *raw) { r.welcome() })
		began := time.Now()
		w, err := natswire.Dial(t.Context(), connect(), "name", nil)
		require.NoError(t, err)
		defer w.Close()
		err = readError(w)
		require.ErrorIs(t, err, natswire.ErrPeerGone)
		require.ErrorContains(t, err, "nothing was heard from it for 15s")
		require.InDelta(t, silence*beat, time.Since(began), float64(beat))
	})
}

// An idle Wire sends keepalives, and keeps a peer that sends them.
func TestKeepalive_IdleWire(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func() *nats.Conn) {
		welcomed := make(chan *raw, 1)
		answering(t, connect(), "name", func(r *raw) {
			r.welcome()
			welcomed <- r
		})
		w, err := natswire.Dial(t.Context(), connect(), "name", nil)
		require.NoError(t, err)
		defer w.Close()
		r := <-welcomed
		began := time.Now()
		for range 2 * silence {
			r.until(kindState)
			r.send(kindState, "")
		}
		require.InDelta(t, 2*silence*beat, time.Since(began), float64(beat))
		r.send(kindData, "\x00\x00\x00\x02ok")
		frame, err := w.ReadFrame(most)
		require.NoError(t, err)
		require.Equal(t, "ok", string(frame))
	})
}
