package carrier

import (
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/priority"
)

// Upper is the session above a Carrier. Its methods are called without a lock.
type Upper interface {
	slog.LogValuer // the session's name in logs

	// Receive does what a frame says, which is a message of type t. The frame is valid only during
	// the call. age is how long ago the first part of it came, and 0 if it came whole. An error
	// ends the session. The reader calls it, as it does the next three.
	Receive(t message.Type, frame []byte, age time.Duration) error

	// Admit is called for the first part of a message of whole bytes, before anything of it is
	// kept. others is what is unfinished besides. If the message is a Close, Admit returns the
	// priority of its pipe. An error ends the session.
	Admit(h message.Head, whole int, others Unfinished) (Admission, priority.Priority, error)

	// GivenUp is called when the peer has given up a message of which not all parts have come.
	GivenUp(pipe uint64)

	// Stray is called for a part of a message that is not unfinished. An error ends the session.
	Stray(pipe uint64) error

	// Ended aborts all that runs, because of cause. It is called once, when nothing departs any
	// more but the goodbye.
	Ended(cause *codec.Abort)

	// Away is called when the Wire is lost because of cause, nobody writes any more, and the
	// Carrier is about to wait for another Wire.
	Away(cause *codec.Abort)

	// StillAway is called from time to time while the Carrier waits for another Wire.
	StillAway()

	// Back is called by the reader of another Wire, before it reads.
	Back()

	// Finished is called at the very end, once, when nobody reads or writes any more.
	Finished()
}

// Unfinished is what has begun to come in parts.
type Unfinished struct {
	Opens   int // how many of them are Opens
	Content int // bytes of the parameters of these
	Counted int // bytes of Opens and Blocks
	Bytes   int // bytes of all
}

// Admission says what becomes of a message that comes in parts.
type Admission uint8

const (
	Admitted Admission = iota // it is received when it is complete
	Ignored                   // nobody wants it; its other parts are still to come
	Late                      // its pipe is over, and its other parts are late as well
)

// Settings are what the Carriers of a node have in common. They do not change.
type Settings struct {
	Log *slog.Logger
	// after how long without sending a Ping is sent; 0: only if the peer asks for none
	PingInterval time.Duration
	PingTimeout  time.Duration // after how long without hearing the peer is lost
	WriteTimeout time.Duration // after how long without taking anything the peer is lost
	Stall        time.Duration // how long the application may take nothing at the soft limit
	ResumeFor    time.Duration // how long a Carrier that is away waits for another Wire
	MaxPart      int           // bytes of the largest part of a message; 0: as the protocol allows
	Now          func() time.Duration
	Lookout      *Lookout
}

// grace returns how long a message that has begun to arrive may take, besides what its size allows.
func (s *Settings) grace() time.Duration {
	if s.PingInterval == 0 {
		return DefaultTimeout
	}
	return s.PingTimeout
}

// DefaultTimeout is after how long without hearing the peer is given up, if nothing else was set.
const DefaultTimeout = 45 * time.Second
