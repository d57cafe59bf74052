package outbox

import (
	"bytes"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/priority"
)

// HeadSize bounds the bytes of a frame besides its payload and its other fields of variable length.
const HeadSize = 80

// Message is an Open, a Block, a Close or a Control of a pipe. A Block may also be put in pieces,
// each a Message of its own: see Whole. A Message does not contain the id of the pipe, which is
// assigned when the Open departs. The fields of an Open come first: its caller
// writes them and the writer reads them, often on another processor.
type Message struct {
	// ControlType is for a Control that must not overtake earlier messages of its pipe: see Control
	Type     message.Type
	End      bool          // of a Block: the end of its direction
	Loss     uint8         // of a Block
	Pressed  bool          // of a Block: the session is under pressure, and its loss rate counts
	Control  Control       // of a Control: its kind
	begun    bool          // a part of it has been sent
	Function uint16        // of an Open
	Payload  []byte        // params, payload or result
	Departer Departer      // of an Open
	flow     *Flow         // while queued, or in the intake
	older    *Message      // while in the intake
	Expires  time.Time     // when it becomes worthless; zero: never, as for an End
	Meta     *message.Meta // of an Open; nil: none; its TTL follows from Expires
	Abort    *codec.Abort  // of a Close; nil is success
	Skipped  uint64        // of a Block, a Close: dropped Blocks before it; of a Skip: what stays
	Marker   any           // a value of the application, for the report of a drop
	Sender   Sender        // of a Block or a Skip

	// of Payload, if the Outbox takes it over; the caller keeps it after an error
	Memory *buffer.Buffer
	flush  uint32 // number of flushes begun when the message was put
	Held   uint32 // its count in bytes while it waits

	// Whole is the size of the Block of which Payload is the piece that begins at Offset; 0:
	// Payload is the whole Block. A piece that has been put departs, unless its pipe ends first. No
	// other Block of the pipe may be put between two pieces. A piece fits into a part together with
	// the rest of its frame, and has at least [message.LeastPart] bytes except at the end. An empty
	// piece abandons the rest of the Block.
	Whole, Offset uint32
}

// Control is a kind of Control that belongs to a pipe and keeps its place in the order.
type Control uint8

const (
	Stop Control = iota
	// returns credit: its Sender is called when it departs
	Skip
)

// Departer is informed of the fate of an Open by one of its methods, unless Cancel or Finish comes
// first. Both methods are called for an Open of which only some parts were sent when the Outbox is
// closed.
type Departer interface {
	// Depart is called with the lock of the Outbox held, before any byte of the Open can reach the
	// peer. It must not call the Outbox.
	Depart(id uint64)

	// Discard is called with the lock of the Outbox held if the Outbox is closed, or the Open
	// expires, before the whole Open has departed. The call has not run and will not run. begun
	// reports that Depart was called before, so that the call may be over already. Discard must not
	// call the Outbox.
	Discard(why Reason, begun bool)
}

// Sender sends the Blocks of a pipe.
type Sender interface {
	// Skipping is called with the lock of the Outbox held when a Skip departs. sent is the cost of
	// the Blocks that have departed before it, the low bits, and stays the credit that this side
	// keeps. Skipping returns the new total of sent cost, or false if the Skip is not to be sent.
	// It must not call the Outbox.
	Skipping(sent uint32, stays uint64) (total uint64, ok bool)

	// Dropped is called without a lock when an accepted Block was dropped although its pipe
	// continues. payload is the size of the Block in bytes.
	Dropped(payload int)
}

// Reason is the reason for which a message was dropped.
type Reason uint8

const (
	Closed     Reason = iota // the Outbox was closed first
	Expired                  // its time expired
	Thinned                  // the session was under pressure, and its loss rate permitted it
	NoFunction               // the peer has no such function
	Draining                 // the peer accepts no new calls
	Ended                    // the call ended first, for another reason
)

// frameStamp is the fields of a frame that are known only when its message departs.
type frameStamp struct {
	pipe     uint64
	priority priority.Priority
	ttl      uint32 // remaining time in milliseconds, or 0 if it never expires
}

// event returns the event of the flow of m when m is put.
func (m *Message) event() flowEvent {
	switch {
	case m.Type == message.OpenType:
		return putOpen
	case m.Type == message.BlockType && m.End:
		return putEnd
	case m.Type == message.BlockType:
		return putBlock
	case m.Type == message.CloseType:
		return putClose
	}
	return putControl
}

// timeLeft returns the remaining time of m in milliseconds, or 0 if m never expires. ok is false if
// no time is left. An End never expires. Neither does a piece of a Block: the receiver drops the
// Block when its time is over.
func (m *Message) timeLeft() (ttl uint32, ok bool) {
	if m.Expires.IsZero() || m.End {
		return 0, true
	}
	if ttl, ok = millisUntil(m.Expires); !ok && m.Whole > 0 {
		return 1, true
	}
	return ttl, ok
}

// millisUntil returns the milliseconds until t. ok is false if t has passed.
func millisUntil(t time.Time) (ttl uint32, ok bool) {
	left := time.Until(t)
	if left <= 0 {
		return 0, false
	}
	return millis(left), true
}

// millis returns d in whole milliseconds, rounded up, and limited to the range of the wire format.
func millis(d time.Duration) uint32 {
	return uint32(min((d+time.Millisecond-1)/time.Millisecond, message.MaxTTL))
}

// tellsGaps reports whether m can carry the number of Blocks dropped before it.
func (m *Message) tellsGaps() bool {
	return m.Type == message.BlockType && m.Offset == 0 || m.Type == message.CloseType
}

// lastPiece reports whether the Block of m ends with m.
func (m *Message) lastPiece() bool { return int(m.Offset)+len(m.Payload) >= int(m.Whole) }

// blockSize returns the size of the Block of m, in bytes.
func (m *Message) blockSize() int { return max(len(m.Payload), int(m.Whole)) }

// size returns the bytes of the fields of m with variable length. The frame of m has at most
// HeadSize more.
func (m *Message) size() int {
	n := len(m.Payload)
	if m.Meta != nil {
		n += len(m.Meta.Trace) + len(m.Meta.Key) + len(m.Meta.Metadata)
	}
	if m.Abort != nil {
		n += len(m.Abort.Message) + len(m.Abort.Detail)
	}
	return n
}

// free releases the memory of m, but keeps the length of Payload. If a part has been sent, the
// writer may still read the memory, which is then left to the garbage collector.
func (m *Message) free() {
	if m.Memory != nil && !m.begun {
		m.Memory.Release()
	}
	m.Memory = nil
}

// own moves the payload into memory of its own, if there are buffers for its size or it exceeds
// their sizes.
func (m *Message) own() {
	switch {
	case m.Memory != nil:
	case buffer.Snug(len(m.Payload)):
		m.Memory = buffer.Take(len(m.Payload))
		m.Payload = m.Memory.B[:copy(m.Memory.B, m.Payload)]
	case len(m.Payload) > buffer.Most:
		m.Memory = &buffer.Buffer{B: bytes.Clone(m.Payload)}
		m.Payload = m.Memory.B
	}
}

// move moves the content of m into a Message to be queued for f, which shares no memory with other
// code, except for an Abort and metadata, which never change.
func (m *Message) move(f *Flow, flush uint32) Message {
	c := *m
	m.Memory = nil
	if c.own(); c.Memory == nil {
		c.Payload = bytes.Clone(c.Payload)
	}
	if m.Meta != nil {
		meta := *m.Meta
		meta.Trace, meta.Key = bytes.Clone(meta.Trace), bytes.Clone(meta.Key)
		c.Meta = &meta
	}
	c.flow, c.flush = f, flush
	return c
}

// appendTo appends the frame of m.
func (m *Message) appendTo(dst []byte, s frameStamp) []byte {
	switch m.Type {
	case message.OpenType:
		o := m.open(s)
		return o.AppendTo(dst)
	case message.BlockType:
		b := m.block(s)
		return b.AppendTo(dst)
	case message.ControlType:
		return message.Stop{Pipe: s.pipe}.AppendTo(dst)
	default:
		c := message.Close{Pipe: s.pipe, Result: m.Payload, Abort: m.Abort}
		return c.AppendTo(dst)
	}
}

// appendAround is appendTo without the payload, which belongs at the position at. It is for
// messages with a large payload.
func (m *Message) appendAround(dst []byte, s frameStamp) (around []byte, at int) {
	switch m.Type {
	case message.OpenType:
		o := m.open(s)
		return o.AppendAround(dst)
	case message.BlockType:
		b := m.block(s)
		return b.AppendAround(dst, m.blockSize())
	default:
		c := message.Close{Pipe: s.pipe, Result: m.Payload}
		return c.AppendAround(dst)
	}
}

func (m *Message) open(s frameStamp) message.Open {
	o := message.Open{Pipe: s.pipe, Function: m.Function, Priority: int8(s.priority), Params: m.Payload}
	if m.Meta != nil {
		o.Meta = *m.Meta
	}
	o.Meta.TTL = s.ttl
	return o
}

func (m *Message) block(s frameStamp) message.Block {
	return message.Block{Pipe: s.pipe, Payload: m.Payload, End: m.End, Meta: message.Meta{TTL: s.ttl, Loss: m.Loss, Skipped: m.Skipped}}
}

// amount counts messages and the bytes that they hold.
type amount struct{ messages, bytes int }

// add adds one message.
func (a *amount) add(m *Message) {
	a.messages++
	a.bytes += int(m.Held)
}

// join adds b to a.
func (a *amount) join(b amount) {
	a.messages += b.messages
	a.bytes += b.bytes
}
