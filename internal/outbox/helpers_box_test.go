package outbox_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/priority"
)

func TestMain(m *testing.M) { leak.Main(m) }

// opening is a Departer that records its calls.
type opening struct {
	ids       []uint64
	discarded int
}

func (o *opening) Depart(id uint64) { o.ids = append(o.ids, id) }

func (o *opening) Discard(outbox.Reason, bool) { o.discarded++ }

// overhead is the cost of a Block to the peer besides its payload.
const overhead = 512

// box is an Outbox and the amounts it has reported as written.
type box struct {
	*outbox.Outbox
	t        *testing.T
	messages int
	bytes    int
	drops    []outbox.Drop
}

func newBox(t *testing.T) *box {
	b := &box{t: t}
	b.Outbox = outbox.New(0, 1<<20, overhead, 0,
		func(messages, bytes int) { b.messages += messages; b.bytes += bytes },
		func(d []outbox.Drop) { b.drops = append(b.drops, d...) })
	return b
}

func (b *box) open(p priority.Priority) (*outbox.Flow, *opening) {
	b.t.Helper()
	f, o := outbox.NewFlow(p), new(opening)
	_, err := b.Put(&f, &outbox.Message{Type: message.OpenType, Departer: o})
	require.NoError(b.t, err)
	return &f, o
}

func (b *box) block(f *outbox.Flow, payload []byte) (write bool) {
	b.t.Helper()
	write, err := b.Put(f, &outbox.Message{Type: message.BlockType, Payload: payload, Held: uint32(len(payload))})
	require.NoError(b.t, err)
	return write
}

// take returns the next batch as frames; the batch is not yet written.
func (b *box) take() (batch []byte, frames []string) {
	b.t.Helper()
	batch, _ = b.Take()
	for rest := batch; len(rest) > 0; {
		n := 4 + binary.BigEndian.Uint32(rest)
		frames = append(frames, describe(b.t, rest[4:n]))
		rest = rest[n:]
	}
	return batch, frames
}

// drain writes all batches and returns their frames.
func (b *box) drain() (all []string) {
	b.t.Helper()
	for {
		batch, frames := b.take()
		if batch == nil {
			return all
		}
		all = append(all, frames...)
		b.Written(batch)
	}
}

// describe returns a frame as "Block 2 ab": type, pipe and the first bytes of the payload.
func describe(t *testing.T, frame []byte) string {
	kind, err := message.TypeOf(frame)
	require.NoError(t, err)
	short := func(b []byte) string { return string(b[:min(len(b), 8)]) }
	switch kind {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		require.NoError(t, err)
		return fmt.Sprintf("Open %d", m.Pipe)
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		require.NoError(t, err)
		return fmt.Sprintf("Block %d %s", m.Pipe, short(m.Payload))
	case message.CloseType:
		m, err := message.ParseClose(frame)
		require.NoError(t, err)
		return fmt.Sprintf("Close %d", m.Pipe)
	}
	m, err := message.ParseControl(frame)
	require.NoError(t, err)
	return fmt.Sprintf("%T", m)
}

// fill puts enough messages that later ones wait behind the departing batch.
func (b *box) fill() *outbox.Flow {
	f, _ := b.open(priority.Normal)
	b.block(f, bytes.Repeat([]byte("x"), 63<<10-10))
	return f
}

// drainQuietly is drain without a check of the frames.
func (b *box) drainQuietly() {
	for {
		batch, _ := b.Take()
		if batch == nil {
			return
		}
		b.Written(batch)
	}
}

// controls drains b and returns the Controls.
func (b *box) controls() (list []message.Control) {
	b.t.Helper()
	for {
		batch, _ := b.Take()
		if batch == nil {
			return list
		}
		for rest := batch; len(rest) > 0; {
			n := 4 + binary.BigEndian.Uint32(rest)
			if kind, _ := message.TypeOf(rest[4:n]); kind == message.ControlType {
				c, err := message.ParseControl(rest[4:n])
				require.NoError(b.t, err)
				list = append(list, c)
			}
			rest = rest[n:]
		}
		b.Written(batch)
	}
}

func (b *box) control(c message.Control) {
	b.t.Helper()
	_, err := b.PutControl(c)
	require.NoError(b.t, err)
}

// announcer has a Control with the number of its calls as the limit.
type announcer struct{ pipe, asked uint64 }

func (a *announcer) Controls(put func(message.Control)) {
	a.asked++
	put(message.Credit{Pipe: a.pipe, Limit: a.asked})
}

// skipper is a Sender that returns credit, wants times.
type skipper struct {
	wants   int
	sent    []uint32
	dropped []int
}

// Skipping returns a credit of 100, and records its arguments.
func (a *skipper) Skipping(sent uint32, stays uint64) (total uint64, ok bool) {
	a.sent = append(a.sent, sent, uint32(stays))
	a.wants--
	return 1<<40 + 100 + uint64(sent), a.wants >= 0
}

func (a *skipper) Dropped(payload int) { a.dropped = append(a.dropped, payload) }

func (b *box) skip(f *outbox.Flow, a *skipper, stays uint64) {
	b.t.Helper()
	m := outbox.Message{Type: message.ControlType, Control: outbox.Skip, Skipped: stays, Sender: a, Held: 100}
	_, err := b.Put(f, &m)
	require.NoError(b.t, err)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// blocks drains b and returns the Blocks of a pipe.
func (b *box) blocks(pipe uint64) (list []message.Block) {
	b.t.Helper()
	for {
		batch, _ := b.Take()
		if batch == nil {
			return list
		}
		for rest := batch; len(rest) > 0; {
			n := 4 + binary.BigEndian.Uint32(rest)
			if m, err := message.ParseBlock(rest[4:n]); err == nil && m.Pipe == pipe {
				m.Payload = append([]byte(nil), m.Payload...)
				list = append(list, m)
			}
			rest = rest[n:]
		}
		b.Written(batch)
	}
}

func (b *box) send(f *outbox.Flow, m outbox.Message) {
	b.t.Helper()
	m.Type = message.BlockType
	_, err := b.Put(f, &m)
	require.NoError(b.t, err)
}

// enter is open by Enter. write is the result of Enter.
func (b *box) enter(p priority.Priority, params string) (f *outbox.Flow, o *opening, write bool) {
	b.t.Helper()
	flow, o := outbox.NewFlow(p), new(opening)
	write, err := b.Enter(&flow, &outbox.Message{Type: message.OpenType, Payload: []byte(params), Departer: o})
	require.NoError(b.t, err)
	return &flow, o, write
}

// put puts m and requires that m is accepted.
func (b *box) put(f *outbox.Flow, m outbox.Message) {
	b.t.Helper()
	_, err := b.Put(f, &m)
	require.NoError(b.t, err)
}

// refuses requires that m is rejected because of the state of its pipe.
func (b *box) refuses(f *outbox.Flow, m outbox.Message) {
	b.t.Helper()
	_, err := b.Put(f, &m)
	require.ErrorIs(b.t, err, outbox.ErrEnded)
}
