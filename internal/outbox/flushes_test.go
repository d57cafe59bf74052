package outbox_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestFlush_WaitsForEarlier(t *testing.T) {
	b := newBox(t)
	done := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	require.True(t, done(b.Flush()), "nothing was put")

	b.fill()
	low, _ := b.open(-1)
	flushed := b.Flush()
	high, _ := b.open(1)
	b.block(high, bytes.Repeat([]byte("h"), 64<<10))
	b.block(low, []byte("later"))

	batch, _ := b.take()
	b.Written(batch)
	require.False(t, done(flushed), "the low Open still waits")
	batch, frames := b.take()
	require.NotContains(t, frames, "Open 4", "later messages of higher priority went before it")
	b.Written(batch)
	require.False(t, done(flushed))
	b.drain()
	require.True(t, done(flushed))
}

func TestFlush_CoversControls(t *testing.T) {
	b := newBox(t)
	for name, put := range map[string]func(){
		"a Pong":          func() { b.control(message.Pong{}) },
		"a Ping":          func() { b.control(message.Ping{}) },
		"an announcement": func() { b.Announce(new(announcer)) },
	} {
		put()
		idle := b.Flush()
		require.False(t, isClosed(idle), name)
		batch, _ := b.Take()
		put()
		busy := b.Flush()
		b.Written(batch)
		require.True(t, isClosed(idle), name)
		require.False(t, isClosed(busy), "%s that waits for the writer", name)
		b.drain()
		require.True(t, isClosed(busy), name)
	}
}

func TestFlush_IgnoresVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, m := range map[string]outbox.Message{
			"a Skip":  {Type: message.ControlType, Control: outbox.Skip, Sender: new(skipper)},
			"a Block": {Type: message.BlockType, Expires: time.Now().Add(time.Second)},
		} {
			b := newBox(t)
			f := b.fill()
			b.block(f, make([]byte, 63<<10)) // a batch of its own
			_, err := b.Put(f, &m)
			require.NoError(t, err)
			done := b.Flush()
			for range 2 {
				batch, _ := b.take()
				b.Written(batch)
			}
			fakeclock.Sleep(2 * time.Second)
			batch, _ := b.Take()
			require.Nil(t, batch, name)
			require.True(t, isClosed(done), name)
		}
	})
}
