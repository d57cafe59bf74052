package carrier

import (
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/priority"
)

// Receiver processes the frames of a session. The reader calls its methods, without a lock.
type Receiver interface {
	// Receive processes a frame, a message of type t. The frame is valid only during the call. age
	// is the time since its first part arrived, and 0 for a message that came whole. An error ends
	// the session.
	Receive(t message.Type, frame []byte, age time.Duration) error

	// Admit is called for the first part of a message of whole bytes, before any memory is
	// allocated. others is the sum of the other unfinished messages. For a Close, Admit returns the
	// priority of its pipe. An error ends the session.
	Admit(h message.Head, whole int, others Unfinished) (Admission, priority.Priority, error)

	// BlockPart is called for each part of an admitted Block. got is the number of bytes of its
	// payload that have arrived. granted is the number of bytes that the peer may send without
	// further credit. An error ends the session.
	BlockPart(pipe uint64, got int) (granted int, use Admission, err error)

	// GivenUp is called when the peer has abandoned a message of which some parts have not arrived.
	GivenUp(h message.Head)

	// BlockIdle is called from time to time for a Block of which no part comes. It returns false
	// if the peer lacks credit for the rest of the Block. Otherwise it ends the pipe if late is
	// true.
	BlockIdle(pipe uint64, late bool) (credit bool)

	// Stray is called for a part without an unfinished message. An error ends the session.
	Stray(pipe uint64) error
}

// Session is the session above a Carrier. Its methods are called without a lock.
type Session interface {
	slog.LogValuer // the name of the session in logs

	// Ended aborts all calls with cause. It is called once, when the goodbye is the only message
	// that may still be sent.
	Ended(cause *codec.Abort)

	// Away is called after the Wire was lost with error cause and the writer has ended, before the
	// Carrier waits for another Wire.
	Away(cause *codec.Abort)

	// StillAway is called from time to time while the Carrier waits for another Wire.
	StillAway()

	// Relieve is called when the application has taken no message for too long. It drops messages
	// that no application will take, and reports whether there were some.
	Relieve() bool

	// Back is called by the reader of another Wire, before it reads.
	Back()

	// Finished is called once, at the very end, when reading and writing have ended for good.
	Finished()
}

// Unfinished is the sum of the messages that have begun to arrive in parts.
type Unfinished struct {
	Opens   int // number of Opens
	Content int // bytes of the parameters of these Opens
	Counted int // bytes of Opens and Blocks
	Bytes   int // bytes of all messages
}

// Admission is the decision on a message that arrives in parts.
type Admission uint8

const (
	Admitted Admission = iota // it is received when complete
	Ignored                   // its remaining parts are discarded
	Late                      // its pipe has ended, and its remaining parts are late as well
)
