package message

import (
	"math"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// Control is a message about the session: one of Sync, Ping, Pong, Credit, Ack, Drain,
// SessionClose, Stop, Skip and UnknownControl.
type Control interface {
	// AppendTo appends the frame to dst and returns the longer slice. It keeps no part of the
	// message. Numbers beyond 2^53-1 are sent as 2^53-1.
	AppendTo(dst []byte) []byte
	control()
}

// Control codes. Codes from 64 to 127 are never assigned, so that tests of ignored Controls have
// codes that stay unknown.
const (
	syncCode = iota + 1
	pingCode
	pongCode
	creditCode
	ackCode
	drainCode
	closeCode
	stopCode
	skipCode
)

// Ping asks the peer for a sign of life. A Ping behind other frames is also a mark: the peer has
// read all earlier frames when its Pong arrives.
type Ping struct {
	N     uint64 // returned in the Pong
	Holds uint64 // capacity of the path to the receiver, in bytes; 0: not known, and not sent
}

// Pong answers a Ping.
type Pong struct {
	N uint64 // that of the Ping
}

// Credit grants the receiver of this message the right to send. It is a total since the beginning,
// so that a duplicate Credit has no effect; it never shrinks.
type Credit struct {
	Pipe  uint64 // the pipe of the Blocks, in the direction against this message
	Opens bool   // the session's Opens instead; Pipe is not sent
	Limit uint64 // total cost of the Blocks of the pipe, or of the Opens of the session
	Extra uint64 // with Opens, the total of the extra credit, see [Sync].Extra; not sent if 0
}

// Ack reports how many messages have arrived, so that the sender need not keep them for a resume.
type Ack struct {
	Count uint64
}

// Drain announces that no Opens after a certain pipe will be run; calls up to it will be completed.
type Drain struct {
	Last uint64 // the last pipe that will be run
	None bool   // none will be run; Last is not sent
}

// SessionClose ends the session.
type SessionClose struct {
	Code    codec.Code
	Message string // for users; truncated to codec.MaxReason bytes
}

// Stop announces that the sender of this message wants no more Blocks of a pipe. The call
// continues, and so does the other direction.
type Stop struct {
	Pipe uint64
}

// Skip returns unused credit: the sender raises the cost of its Blocks since the start of the pipe
// to Sent, without sending Blocks for the difference. The receiver counts the difference as
// received and consumed, and does not grant it again.
type Skip struct {
	Pipe uint64
	Sent uint64 // at most the granted amount
}

// UnknownControl is a Control of a later version. Receivers ignore it and discard its content.
// Codes from 64 to 127 are unknown to all versions.
type UnknownControl struct {
	Code uint64
}

func (Sync) control()           {}
func (Ping) control()           {}
func (Pong) control()           {}
func (Credit) control()         {}
func (Ack) control()            {}
func (Drain) control()          {}
func (SessionClose) control()   {}
func (Stop) control()           {}
func (Skip) control()           {}
func (UnknownControl) control() {}

// AppendTo implements Control.
func (c Ping) AppendTo(dst []byte) []byte {
	if c.Holds == 0 {
		return cborhead.AppendNumber(appendControl(dst, pingCode, 1), c.N)
	}
	dst = cborhead.AppendNumber(appendControl(dst, pingCode, 2), c.N)
	return cborhead.AppendNumber(dst, c.Holds)
}

// AppendTo implements Control.
func (c Pong) AppendTo(dst []byte) []byte {
	return cborhead.AppendNumber(appendControl(dst, pongCode, 1), c.N)
}

// AppendTo implements Control.
func (c Credit) AppendTo(dst []byte) []byte {
	if !c.Opens || c.Extra == 0 {
		dst = appendOrNull(appendControl(dst, creditCode, 2), c.Pipe, c.Opens)
		return cborhead.AppendNumber(dst, c.Limit)
	}
	dst = appendOrNull(appendControl(dst, creditCode, 3), c.Pipe, c.Opens)
	dst = cborhead.AppendNumber(dst, c.Limit)
	return cborhead.AppendNumber(dst, c.Extra)
}

// AppendTo implements Control.
func (c Ack) AppendTo(dst []byte) []byte {
	return cborhead.AppendNumber(appendControl(dst, ackCode, 1), c.Count)
}

// AppendTo implements Control.
func (c Drain) AppendTo(dst []byte) []byte {
	return appendOrNull(appendControl(dst, drainCode, 1), c.Last, c.None)
}

// AppendTo implements Control.
func (c SessionClose) AppendTo(dst []byte) []byte {
	return appendReason(appendControl(dst, closeCode, 2), c.Code, c.Message)
}

// AppendTo implements Control.
func (c Stop) AppendTo(dst []byte) []byte {
	return cborhead.AppendNumber(appendControl(dst, stopCode, 1), c.Pipe)
}

// AppendTo implements Control.
func (c Skip) AppendTo(dst []byte) []byte {
	dst = cborhead.AppendNumber(appendControl(dst, skipCode, 2), c.Pipe)
	return cborhead.AppendNumber(dst, c.Sent)
}

// AppendTo implements Control. It sends only the code.
func (c UnknownControl) AppendTo(dst []byte) []byte {
	return appendControl(dst, c.Code, 0)
}

// appendControl appends the head of a Control that has n fields after its code.
func appendControl(dst []byte, code uint64, n byte) []byte {
	return cborhead.AppendNumber(append(dst, cborhead.Array|(2+n), byte(ControlType)), code)
}

func appendOrNull(dst []byte, n uint64, isNull bool) []byte {
	if isNull {
		return append(dst, cborhead.Null)
	}
	return cborhead.AppendUint(dst, n)
}

// ParseControl reads the frame of a Control. Byte slices of a Sync are parts of frame, strings are
// not. The message of a SessionClose is truncated to codec.MaxReason bytes. The error is a
// *FrameError. An unknown code is no error, if the rest of the frame is well-formed.
func ParseControl(frame []byte) (Control, error) {
	r := cborhead.Reader{Data: frame}
	n := start(&r, ControlType, 2, math.MaxInt)
	c := readControl(&r, r.Uint("control code", MaxPipe), n)
	if err := end(&r); err != nil {
		return nil, err
	}
	return c, nil
}

// readControl reads the rest of a Control frame of n elements.
func readControl(r *cborhead.Reader, code uint64, n int) Control {
	switch code {
	case syncCode:
		arity(r, n, 4, 4, "Sync")
		return readSync(r)
	case pingCode:
		arity(r, n, 3, 4, "Ping")
		return readPing(r, n)
	case pongCode:
		arity(r, n, 3, 3, "Pong")
		return Pong{N: r.Uint("number", MaxPipe)}
	case creditCode:
		arity(r, n, 4, 5, "Credit")
		return readCredit(r, n)
	case ackCode:
		arity(r, n, 3, 3, "Ack")
		return Ack{Count: r.Uint("count", MaxPipe)}
	case drainCode:
		arity(r, n, 3, 3, "Drain")
		last, none := readPipeOrNull(r)
		return Drain{Last: last, None: none}
	case closeCode:
		arity(r, n, 4, 4, "Close of the session")
		return SessionClose{Code: readCode(r), Message: readReason(r)}
	case stopCode:
		arity(r, n, 3, 3, "Stop")
		return Stop{Pipe: r.Uint("pipe id", MaxPipe)}
	case skipCode:
		arity(r, n, 4, 4, "Skip")
		return Skip{Pipe: r.Uint("pipe id", MaxPipe), Sent: r.Uint("skipped cost", MaxPipe)}
	}
	for ; n > 2 && r.Err == nil; n-- {
		r.Skip()
	}
	return UnknownControl{Code: code}
}

func readPing(r *cborhead.Reader, n int) Ping {
	p := Ping{N: r.Uint("number", MaxPipe)}
	if n > 3 {
		p.Holds = r.UintFrom("bytes of the path", 1, MaxPipe)
	}
	return p
}

// readCredit reads the fields of a Credit in a frame of n elements.
func readCredit(r *cborhead.Reader, n int) Credit {
	pipe, opens := readPipeOrNull(r)
	if !opens {
		arity(r, n, 4, 4, "Credit of a pipe")
	}
	c := Credit{Pipe: pipe, Opens: opens, Limit: r.Uint("limit", MaxPipe)}
	if n == 5 {
		c.Extra = r.Uint("extra credit", MaxPipe)
	}
	return c
}
