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

// Message is an Open, a Block, a Close or a Stop without the pipe's id, which is given out when the
// Open departs. What an Open needs comes first: it is written by its caller and read by the writer,
// often on another processor.
type Message struct {
	// ControlType is one that has to go behind what was put of its pipe before: see Control
	Type     message.Type
	End      bool          // of a Block: the end of its direction
	Loss     uint8         // of a Block
	Pressed  bool          // of a Block: the session is under pressure, so that its loss rate counts
	Control  Control       // of a Control: which one
	Function uint16        // of an Open
	Payload  []byte        // params, payload or result
	Departer Departer      // of an Open
	flow     *Flow         // while queued, or in the intake
	older    *Message      // while in the intake
	Expires  time.Time     // from then on it is not worth delivering; zero: never
	Meta     *message.Meta // of an Open; nil: nothing; its TTL follows from Expires
	Abort    *codec.Abort  // of a Close; nil is success
	Skipped  uint64        // of a Block or a Close: how many are missing before it
	Marker   any           // the application's own, for the report of a drop
	Sender   Sender        // of a Block or an Ask

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
)

// Departer learns what becomes of an Open: one of its methods is called, unless Cancel comes first.
type Departer interface {
	// Depart is called with the lock of the Outbox held, before a byte of the Open can reach the
	// peer. It must not call the Outbox.
	Depart(id uint64)

	// Discard is called with the lock of the Outbox held when the Outbox is closed, or the Open's
	// time is up, before it has departed. It must not call the Outbox.
	Discard(Reason)
}

// Sender sends the Blocks of a pipe.
type Sender interface {
	// Asking is called with the lock of the Outbox held when an Ask departs, with the low bits of
	// the cost of what has departed before it. It returns what the Ask says, or false if it is not
	// to be sent. It must not call the Outbox.
	Asking(sent uint32) (departed, total uint64, ok bool)

	// Dropped is called without a lock when a Block was accepted and then dropped, although its
	// pipe goes on, with the bytes of its payload.
	Dropped(payload int)
}

// Flow is one pipe's place in an Outbox. It is guarded by the lock of its Outbox.
type Flow struct {
	queue    priority.Flow[Message]
	id       uint64
	departed bool   // the peer may know of the pipe
	ended    bool   // no Block may follow
	closed   bool   // nothing may follow
	debt     uint8  // of the loss rate; see thin
	sent     uint32 // the low bits of the cost of the Blocks that have departed
	// nil until it is needed: most pipes are short calls, which it would make larger
	rest *rest
}

// rest is what a flow has to remember once its messages wait, or are dropped.
type rest struct {
	// Blocks dropped at the head: after the one that departed last, and before what waits
	skipped uint64
	tail    uint64        // Blocks dropped at the tail: behind all that waits
	backlog int           // bytes of payload in the queue
	room    chan struct{} // closed when backlog has become small again; nil while nobody waits
}

// more returns the rest of f.
func (f *Flow) more() *rest {
	if f.rest == nil {
		f.rest = new(rest)
	}
	return f.rest
}

// NewFlow returns the flow of a pipe that this side opens.
func NewFlow(p priority.Priority) Flow { return Flow{queue: priority.Flow[Message]{Priority: p}} }

// ID returns the id of the pipe. It is fixed from the moment in which its Departer was told, and
// may be asked for without the lock from then on.
func (f *Flow) ID() uint64 { return f.id }

// AcceptedFlow returns the flow of a pipe that the peer opened as id.
func AcceptedFlow(p priority.Priority, id uint64) Flow {
	return Flow{queue: priority.Flow[Message]{Priority: p}, id: id, departed: true}
}

// free gives back the memory that m has. Payload is gone then, but for its length.
func (m *Message) free() {
	if m.Memory != nil {
		m.Memory.Release()
		m.Memory = nil
	}
}

// queued notes that n bytes of payload are in the queue.
func (f *Flow) queued(n int) { f.more().backlog += n }

// left notes that n bytes of payload no longer are.
func (f *Flow) left(n int) {
	r := f.more()
	r.backlog -= n
	if r.room != nil && r.backlog <= backlogLow {
		close(r.room)
		r.room = nil
	}
}

// size returns the bytes of m whose number varies: its frame has at most HeadSize more.
func (m *Message) size() int {
	n := len(m.Payload)
	if m.Meta != nil {
		n += len(m.Meta.Trace) + len(m.Meta.Key)
	}
	if m.Abort != nil {
		n += len(m.Abort.Message) + len(m.Abort.Detail)
	}
	return n
}

// own gives m a payload in memory of its own, where there are buffers for it.
func (m *Message) own() {
	if m.Memory == nil && buffer.Snug(len(m.Payload)) {
		m.Memory = buffer.Take(len(m.Payload))
		m.Payload = m.Memory.B[:copy(m.Memory.B, m.Payload)]
	}
}

// move returns what m is, to be queued for f, with memory that it shares with nobody; an Abort is
// never changed, and shared.
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

// appendTo appends the frame of m. ttl is what is left of its time in milliseconds, or 0 if that
// has no end.
func (m *Message) appendTo(dst []byte, f *Flow, ttl uint32) []byte {
	switch m.Type {
	case message.OpenType:
		o := m.open(f, ttl)
		return o.AppendTo(dst)
	case message.BlockType:
		b := m.block(f, ttl)
		return b.AppendTo(dst)
	case message.ControlType:
		return message.Stop{Pipe: f.id}.AppendTo(dst)
	default:
		c := message.Close{Pipe: f.id, Result: m.Payload, Abort: m.Abort}
		return c.AppendTo(dst)
	}
}

// appendAround is appendTo without the payload, which belongs at the place at. It is for messages
// with a large one.
func (m *Message) appendAround(dst []byte, f *Flow, ttl uint32) (around []byte, at int) {
	switch m.Type {
	case message.OpenType:
		o := m.open(f, ttl)
		return o.AppendAround(dst)
	case message.BlockType:
		b := m.block(f, ttl)
		return b.AppendAround(dst)
	default:
		c := message.Close{Pipe: f.id, Result: m.Payload}
		return c.AppendAround(dst)
	}
}

func (m *Message) open(f *Flow, ttl uint32) message.Open {
	o := message.Open{Pipe: f.id, Function: m.Function, Priority: int8(f.queue.Priority), Params: m.Payload}
	if m.Meta != nil {
		o.Meta = *m.Meta
	}
	o.Meta.TTL = ttl
	return o
}

func (m *Message) block(f *Flow, ttl uint32) message.Block {
	return message.Block{Pipe: f.id, Payload: m.Payload, End: m.End, Meta: message.Meta{TTL: ttl, Loss: m.Loss, Skipped: m.Skipped}}
}
