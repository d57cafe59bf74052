package codec

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Abort is the error that ends a call, a pipe or a session without a result. Code, Message and
// Detail cross the wire, and so does Ran if the call was refused. So both sides branch with
// errors.Is on the same values, such as [ErrOverloaded].
//
// An Abort that was returned as an error is never modified, because several goroutines may hold it.
type Abort struct {
	Code    Code
	Message string // for users: no program should parse it
	Detail  []byte // for programs: the application defines its content; nil if there is none
	Remote  bool   // reported by the peer
	Ran     Ran    // how far the call got
	Cause   error  // the local cause, or nil; it does not cross the wire
}

// Error returns the meaning of the code, the message, the cause if the message does not contain it
// already, and whether the Abort is from the peer.
func (a *Abort) Error() string {
	if a == nil { // as an error it is not nil: a result of AbortOf may get here
		return "asterisque: nil Abort"
	}
	var b strings.Builder
	b.WriteString("asterisque: " + a.Code.String())
	if a.Message != "" {
		b.WriteString(": " + a.Message)
	}
	if cause := a.untold(); cause != nil {
		b.WriteString(": " + cause.Error())
	}
	if a.Remote {
		b.WriteString(" (said by the peer)")
	}
	return b.String()
}

// untold returns Cause if Message does not contain its text.
func (a *Abort) untold() error {
	cause := a.Cause
	if t, ok := cause.(interface{ Text() string }); ok && strings.HasSuffix(a.Message, t.Text()) {
		cause = errors.Unwrap(cause)
	}
	if cause != nil && strings.HasSuffix(a.Message, cause.Error()) {
		return nil
	}
	return cause
}

// Unwrap returns Cause.
func (a *Abort) Unwrap() error {
	if a == nil {
		return nil
	}
	return a.Cause
}

// Is reports whether target is an Abort with the same code, regardless of the other fields. A
// Canceled is also a context.Canceled, an Expired is also a context.DeadlineExceeded, on both sides
// of the wire.
func (a *Abort) Is(target error) bool {
	if a == nil {
		return false
	}
	switch target {
	case context.Canceled:
		return a.Code == Canceled
	case context.DeadlineExceeded:
		return a.Code == Expired
	}
	t, ok := target.(*Abort)
	return ok && t != nil && t.Code == a.Code
}

// Withf returns a copy of a with another message: ErrOverloaded.Withf("%d orders wait", n). It does
// not wrap: set Cause of the copy to keep an error.
func (a *Abort) Withf(format string, args ...any) *Abort {
	b := *a
	b.Message = fmt.Sprintf(format, args...)
	return &b
}

// MaxReason is the largest number of bytes of a Message that is sent; longer ones are truncated. A
// longer Message of the peer is accepted, and truncated then.
const MaxReason = 1024

// AbortOf turns any error into the Abort that is sent to the peer. It returns nil for nil; check
// for that before the result becomes an error. If there is an Abort in err's chain, AbortOf returns
// that one, and no copy. Otherwise err becomes the Cause, and its text the Message, which the peer
// reads. The Code is Canceled for [context.Canceled], Expired for [context.DeadlineExceeded],
// Protocol for an [ErrProtocol], and Failed for everything else.
func AbortOf(err error) *Abort {
	if err == nil {
		return nil
	}
	var a *Abort
	if errors.As(err, &a) && a != nil {
		return a
	}
	return &Abort{Code: codeOf(err), Message: err.Error(), Cause: err}
}

func codeOf(err error) Code {
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Expired
	case errors.Is(err, ErrProtocol):
		return Protocol
	default:
		return Failed
	}
}

// Ran reports how far a call got before it ended with an Abort.
type Ran uint8

// How far a call got.
const (
	MaybeRan  Ran = iota // it may have run, wholly or in part
	NeverSent            // it never left this side
	Refused              // the peer reported that it did not run
)

var ranNames = [...]string{"may have run", "never sent", "refused"}

// String returns the description of r.
func (r Ran) String() string {
	if int(r) < len(ranNames) {
		return ranNames[r]
	}
	return fmt.Sprintf("Ran(%d)", uint8(r))
}

// Repeatable reports whether err shows that the call certainly did not run. Then it can be repeated
// without running twice. Repeatable is false for nil, and for an error without an Abort.
func Repeatable(err error) bool {
	var a *Abort
	return errors.As(err, &a) && a != nil && a.Ran != MaybeRan
}
