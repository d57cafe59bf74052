package outbox

import (
	"bytes"
	"time"
	"unsafe"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/priority"
)

// HeadSize bounds the bytes of a frame besides its payload and the other parts of variable length.
const HeadSize = 80

// Message is an Open, a Block, a Close or a Control of a pipe, without the pipe's id, which is
// given out when the Open departs. What an Open needs comes first: its caller writes that, and the
// writer reads it, often on another processor.
type Message struct {
	// ControlType is one that has to go behind what was put of its pipe before: see Control
	Type     message.Type
	End      bool          // of a Block: the end of its direction
	Loss     uint8         // of a Block
	Pressed  bool          // of a Block: the session is under pressure, and its loss rate counts
	Control  Control       // of a Control: which one
	begun    bool          // a part of it has left
	Function uint16        // of an Open
	Payload  []byte        // params, payload or result
	Departer Departer      // of an Open
	flow     *Flow         // while queued, or in the intake
	older    *Message      // while in the intake
	Expires  time.Time     // from then on it is not worth delivering; zero: never, as of an End
	Meta     *message.Meta // of an Open; nil: nothing; its TTL follows from Expires
	Abort    *codec.Abort  // of a Close; nil is success
	Skipped  uint64        // of a Block or a Close: how many are missing; of a Skip: what stays
	Marker   any           // the application's own, for the report of a drop
	Sender   Sender        // of a Block, an Ask or a Skip

	// of Payload, if that goes to the Outbox with it; it stays its owner's if there is an error
	Memory *buffer.Buffer
	flush  uint32 // how many flushes had begun when the message was put
	Held   uint32 // bytes for which it is counted: what it holds while it waits
}

// Size is what a message holds while it waits besides what it refers to, in bytes.
const Size = int(unsafe.Sizeof(Message{})) + 16

// Control is one of the Controls that belong to a pipe and keep its order.
type Control uint8

const (
	Stop Control = iota
	// for the next Block, or to give back what was allowed: its Sender knows when it departs
	Ask
	// to hand credit back: its Sender knows when it departs
	Skip
)

// Departer learns what becomes of an Open: one of its methods is called, unless Cancel or Finish
// comes first, and both for an Open of which only some parts have left when the Outbox is closed.
type Departer interface {
	// Depart is called with the lock of the Outbox held, before a byte of the Open can reach the
	// peer. It must not call the Outbox.
	Depart(id uint64)

	// Discard is called with the lock of the Outbox held when the Outbox is closed, or the Open's
	// time is up, before all of it has departed. The call has not run and will not. begun says that
	// Depart was called before, so that the call may be over already. Discard must not call the
	// Outbox.
	Discard(why Reason, begun bool)
}

// Sender sends the Blocks of a pipe.
type Sender interface {
	// Asking is called with the lock of the Outbox held when an Ask departs, with the low bits of
	// the cost of what has departed before it. It returns what the Ask says, or false if it is not
	// to be sent. It must not call the Outbox.
	Asking(sent uint32) (departed, total uint64, ok bool)

	// Skipping is called with the lock of the Outbox held when a Skip departs, with the low bits of
	// the cost of what has departed before it, and the credit that stays. It returns what counts as
	// sent from now on, or false if it is not to be sent. It must not call the Outbox.
	Skipping(sent uint32, stays uint64) (total uint64, ok bool)

	// Dropped is called without a lock when a Block was accepted and then dropped, although its
	// pipe goes on, with the bytes of its payload.
	Dropped(payload int)
}

// Reason says why a message was dropped.
type Reason uint8

const (
	Closed     Reason = iota // the Outbox was closed first
	Expired                  // its time was up
	Thinned                  // it was under pressure, and its loss rate allowed it
	NoFunction               // the peer has no such function
	Draining                 // the peer takes no new calls
	Ended                    // the call ended first, for whatever other reason
)

// stamp is what a frame says besides its message, which is known only when that departs.
type stamp struct {
	pipe     uint64
	priority priority.Priority
	ttl      uint32 // what is left of its time in milliseconds, or 0 if that has no end
}

// event returns what happens to the flow of m when m is put.
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

// timeLeft returns what is left of the time of m in milliseconds, 0 if that has no end, or ok ==
// false if nothing is left. An End always has to arrive.
func (m *Message) timeLeft() (ttl uint32, ok bool) {
	if m.Expires.IsZero() || m.End {
		return 0, true
	}
	return millisUntil(m.Expires)
}

// millisUntil returns how many milliseconds there are until t, or ok == false if that has passed.
func millisUntil(t time.Time) (ttl uint32, ok bool) {
	left := time.Until(t)
	if left <= 0 {
		return 0, false
	}
	return millis(left), true
}

// millis returns d in whole milliseconds, rounded up, as far as the wire can tell.
func millis(d time.Duration) uint32 {
	return uint32(min((d+time.Millisecond-1)/time.Millisecond, message.MaxTTL))
}

// tellsGaps reports whether m can tell the peer of Blocks that were dropped before it.
func (m *Message) tellsGaps() bool { return m.Type == message.BlockType || m.Type == message.CloseType }

// size returns the bytes of m whose number varies: its frame has at most HeadSize more.
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

// free gives back the memory that m has. Payload is gone then, but for its length. If a part has
// left, the writer may still read it: then the memory is left to the garbage collector.
func (m *Message) free() {
	if m.Memory != nil && !m.begun {
		m.Memory.Release()
	}
	m.Memory = nil
}

// own gives m a payload in memory of its own, where there are buffers for it, or it is larger than
// those.
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

// move returns what m is, to be queued for f, with memory that it shares with nobody. An Abort and
// metadata are shared, because nobody ever changes them.
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
func (m *Message) appendTo(dst []byte, s stamp) []byte {
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

// appendAround is appendTo without the payload, which belongs at the place at. It is for messages
// with a large one.
func (m *Message) appendAround(dst []byte, s stamp) (around []byte, at int) {
	switch m.Type {
	case message.OpenType:
		o := m.open(s)
		return o.AppendAround(dst)
	case message.BlockType:
		b := m.block(s)
		return b.AppendAround(dst)
	default:
		c := message.Close{Pipe: s.pipe, Result: m.Payload}
		return c.AppendAround(dst)
	}
}

func (m *Message) open(s stamp) message.Open {
	o := message.Open{Pipe: s.pipe, Function: m.Function, Priority: int8(s.priority), Params: m.Payload}
	if m.Meta != nil {
		o.Meta = *m.Meta
	}
	o.Meta.TTL = s.ttl
	return o
}

func (m *Message) block(s stamp) message.Block {
	return message.Block{Pipe: s.pipe, Payload: m.Payload, End: m.End, Meta: message.Meta{TTL: s.ttl, Loss: m.Loss, Skipped: m.Skipped}}
}
