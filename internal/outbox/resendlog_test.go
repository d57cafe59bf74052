package outbox_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// keeper is an Outbox that keeps unacknowledged frames, together with a model of the peer.
type keeper struct {
	*box
	rnd *rand.Rand
	f   *outbox.Flow

	here    uint64 // countable frames that have arrived on this side
	writing bool   // the test is the writer

	blocks, credits uint64 // numbers of those put so far; Credits begin at 1
	sent            int    // bytes of the payloads

	received uint64 // countable frames that have reached the peer
	acked    uint64 // frames of these that the peer has acknowledged
	// numbers of the last received Block, in order, and of the newest Credit
	gotBlocks, gotCr uint64
}

func newKeeper(t *testing.T, seed uint64) *keeper {
	k := &keeper{box: newBox(t), rnd: rand.New(rand.NewPCG(seed, 0))}
	k.Keep(func() uint64 { return k.here }, 1<<20)
	k.f, _ = k.open(0)
	k.writing = true
	return k
}

// putBlock puts a Block that contains its number.
func (k *keeper) putBlock(size int) {
	payload := binary.BigEndian.AppendUint64(nil, k.blocks)
	payload = append(payload, bytes.Repeat([]byte{byte(k.blocks)}, size)...)
	k.blocks++
	k.sent += len(payload)
	k.claim(k.block(k.f, payload))
}

func (k *keeper) claim(write bool) {
	if write {
		require.False(k.t, k.writing, "there is one writer")
		k.writing = true
	}
}

func (k *keeper) control(c message.Control) {
	write, err := k.PutControl(c)
	require.NoError(k.t, err)
	k.claim(write)
}

// arrive delivers the first frames to the peer, each behind its length, or all.
func (k *keeper) arrive(frames []byte, first int) {
	for ; len(frames) > 0 && first > 0; first-- {
		n := 4 + binary.BigEndian.Uint32(frames)
		frame := frames[4:n]
		frames = frames[n:]
		if !message.Countable(frame) {
			continue
		}
		k.received++
		kind, err := message.TypeOf(frame)
		require.NoError(k.t, err)
		switch kind {
		case message.BlockType:
			b, err := message.ParseBlock(frame)
			require.NoError(k.t, err)
			require.Equal(k.t, k.gotBlocks, binary.BigEndian.Uint64(b.Payload), "nothing is lost, doubled or reordered")
			require.Len(k.t, b.Payload, 8+bytes.Count(b.Payload[8:], []byte{byte(k.gotBlocks)}), "nor spoiled")
			k.gotBlocks++
		case message.ControlType:
			c, err := message.ParseControl(frame)
			require.NoError(k.t, err)
			limit := c.(message.Credit).Limit
			require.Greater(k.t, limit, k.gotCr, "none is doubled or reordered")
			k.gotCr = limit
		}
	}
}

// countFrames returns the number of frames, each behind its length.
func countFrames(frames []byte) (n int) {
	for ; len(frames) > 0; n++ {
		frames = frames[4+binary.BigEndian.Uint32(frames):]
	}
	return n
}

// write writes one batch, or loses the Wire in the middle of it.
func (k *keeper) write() {
	batch, end := k.Take()
	if batch == nil {
		require.Equal(k.t, outbox.Idle, end)
		k.writing = false
		return
	}
	if k.rnd.IntN(8) > 0 {
		k.arrive(batch, countFrames(batch))
		k.Written(batch)
		return
	}
	k.arrive(batch, k.rnd.IntN(countFrames(batch)+1))
	k.lose()
}

func (k *keeper) ack() {
	k.acked += uint64(k.rnd.Int64N(int64(k.received-k.acked) + 1))
	require.True(k.t, k.Ack(k.acked))
	require.True(k.t, k.Ack(k.acked/2), "a lower one is ignored")
}

// lose loses the Wire, once or several times, and then resumes over another one.
func (k *keeper) lose() {
	require.Equal(k.t, !k.writing, k.Halt())
	k.writing = true
	for {
		for range k.rnd.IntN(4) { // meanwhile
			k.putBlock(k.rnd.IntN(100))
			k.control(message.Ping{})
		}
		batch, end := k.Take()
		require.Nil(k.t, batch)
		require.Equal(k.t, outbox.Halted, end)
		if k.acked > 0 {
			_, err := k.Resume(k.acked - 1)
			require.ErrorContains(k.t, err, "it has acknowledged", "a frame that is not here any more")
		}
		_, err := k.Resume(1 << 40)
		require.ErrorContains(k.t, err, "were sent", "what never was")
		missing, err := k.Resume(k.received)
		require.NoError(k.t, err)
		k.acked = k.received // acknowledged by the peer
		again := false
		for _, frames := range missing {
			n := countFrames(frames)
			if again = k.rnd.IntN(20) == 0; again {
				k.arrive(frames, k.rnd.IntN(n+1))
				break
			}
			k.arrive(frames, n)
			if k.rnd.IntN(4) == 0 {
				k.ack() // while the rest is being written
			}
		}
		k.Resent()
		if !again {
			return
		}
		require.False(k.t, k.Halt(), "the test is the writer")
	}
}

func TestLog_HasWhatPeerLacks(t *testing.T) {
	for seed := range uint64(40) {
		k := newKeeper(t, seed)
		for range 300 {
			switch k.rnd.IntN(10) {
			case 0, 1, 2:
				k.putBlock(k.rnd.IntN(200))
			case 3:
				k.putBlock(k.rnd.IntN(100_000)) // some fill a batch alone
			case 4:
				k.credits++
				k.control(message.Credit{Opens: true, Limit: k.credits})
			case 5:
				k.control(message.Ping{})
			case 6:
				k.here += uint64(k.rnd.IntN(3))
				k.claim(k.PutAck(2))
			case 7:
				k.ack()
			case 8:
				if k.rnd.IntN(4) == 0 {
					k.lose()
				}
			}
			if k.writing && k.rnd.IntN(2) == 0 {
				k.write()
			}
		}
		for k.writing {
			k.write()
		}
		require.Equal(t, k.blocks, k.gotBlocks, "seed %d", seed)
		require.Equal(t, k.credits, k.gotCr, "seed %d: the newest has come", seed)
		require.False(t, k.Ack(k.received+1), "more than was ever sent")
		require.True(t, k.Ack(k.received))
		require.EqualValues(t, k.blocks+1, k.messages, "the Open and all Blocks are written once they are acknowledged, and once only")
		require.Equal(t, k.sent, k.bytes)
	}
}

func TestLog_UnacknowledgedCounts(t *testing.T) {
	k := newKeeper(t, 0)
	k.drain()
	require.Zero(t, k.messages)
	k.writing = false
	for range 3 {
		k.putBlock(0)
	}
	k.drain()
	require.Zero(t, k.messages, "given to the wire, and kept")
	require.True(t, k.Ack(1))
	require.Equal(t, 1, k.messages, "the Open was a batch of its own")
	require.True(t, k.Ack(3))
	require.Equal(t, 1, k.messages, "a batch is forgotten as a whole")
	require.True(t, k.Ack(4))
	require.Equal(t, 4, k.messages)
	require.False(t, k.Ack(5))
}

func TestLog_ClearedByClose(t *testing.T) {
	k := newKeeper(t, 0)
	k.drain()
	k.writing = false
	for range 3 {
		k.putBlock(1000)
	}
	k.drain()
	k.Close(nil)
	require.Equal(t, 4, k.messages, "and gives it back")
	require.True(t, k.Ack(4), "no error any more")
	_, err := k.Resume(0)
	require.ErrorIs(t, err, outbox.ErrClosed)
}

// TestLog_IdleKeepsNothing sends Pings and Pongs for years. They are not countable, so they are not
// acknowledged, and are never sent again.
func TestLog_IdleKeepsNothing(t *testing.T) {
	for _, pending := range []bool{false, true} {
		t.Run(fmt.Sprint("with something to acknowledge: ", pending), func(t *testing.T) {
			k := newKeeper(t, 0)
			k.drain()
			k.writing = false
			if !pending {
				require.True(t, k.Ack(1))
			}
			before := weightest.Heap()
			for range 100_000 {
				k.control(message.Pong{N: 1})
				batch, _ := k.Take()
				k.Written(batch)
				k.Take()
				k.writing = false
			}
			require.Less(t, weightest.HeldSince(before, 1<<20), 1<<20)
			k.Close(nil)
		})
	}
}

func TestAck_JoinsTheBatch(t *testing.T) {
	k := newKeeper(t, 0)
	k.drain()
	k.writing = false
	require.False(t, k.PutAck(1), "there is nothing to say")
	k.here = 5
	k.putBlock(0)
	_, frames := k.take()
	require.Equal(t, "message.Ack", frames[len(frames)-1])
	require.False(t, k.PutAck(1), "it has been said")
	k.here = 7
	require.False(t, k.PutAck(3), "too little")
	require.False(t, k.PutAck(2), "there is a writer, which will")
	_, frames = k.take()
	require.Equal(t, []string{"message.Ack"}, frames)
}

func TestCountable_BySpecification(t *testing.T) {
	for want, list := range map[bool][]interface{ AppendTo([]byte) []byte }{
		true: {&message.Open{}, &message.Open{Pipe: 1 << 40, Meta: message.Meta{TTL: 1, Key: []byte("k")}}, &message.Block{}, &message.Block{End: true}, &message.Close{}, &message.Close{Abort: codec.ErrCanceled},
			message.Credit{}, message.Credit{Opens: true, Limit: 1 << 40}, message.Drain{}, message.Drain{None: true}, message.Stop{Pipe: 300},
			message.Skip{Pipe: 300, Sent: 2}},
		false: {message.Sync{}, message.Ping{}, message.Pong{N: 6}, message.Ack{Count: 4}, message.SessionClose{Code: 4}, message.UnknownControl{Code: 64}, message.UnknownControl{Code: 1 << 20}},
	} {
		for _, m := range list {
			require.Equal(t, want, message.Countable(m.AppendTo(nil)), "%T %+v", m, m)
		}
	}
	// an unknown Control of thirty elements
	long := append([]byte{0x98, 30, 0, 24, 24}, make([]byte, 28)...)
	long[3], long[4] = 0x18, 0x20
	long = append(long[:5], make([]byte, 28)...)
	_, err := message.ParseControl(long)
	require.NoError(t, err)
	require.False(t, message.Countable(long))
}

func TestHalt_FreesTheBatch(t *testing.T) {
	const n, most = 100, 100 << 10
	var boxes []*box
	before := weightest.Heap()
	for range n {
		b := newBox(t)
		b.Keep(func() uint64 { return 0 }, 1<<20)
		f, _ := b.open(0)
		b.block(f, make([]byte, 1_000))
		batch, _ := b.Take()
		b.Halt()
		b.Written(batch)
		_, end := b.Take()
		require.Equal(t, outbox.Halted, end)
		boxes = append(boxes, b)
	}
	require.Less(t, weightest.HeldSince(before, n*most)/n, most, "the 72 KiB of the kept frames, and no more")
	require.Len(t, boxes, n)
}
