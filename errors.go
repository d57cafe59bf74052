package asterisque

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

// Abort is the error of a call, a pipe or a session that ended without a result, on either side of
// the wire. Branch on it with [errors.Is] and the values below, or on its Code. A handler returns
// an Abort to choose the code, the message and the detail that the caller receives.
type Abort = codec.Abort

// Code is the meaning of an [Abort]. 1..999 belong to the library; applications use numbers from
// 1000 on.
type Code = codec.Code

// Errors to compare with, by [errors.Is]. All but the last two are an *[Abort]. Package codec
// documents the meaning and the remedy of each.
var (
	// The caller canceled, or its context was canceled.
	ErrCanceled = codec.ErrCanceled
	// The deadline or the time to live passed.
	ErrExpired = codec.ErrExpired
	// The peer offers no function of this number.
	ErrNoFunction = codec.ErrNoFunction
	// The parameters do not match the function's type, or exceed [Limits].Expansion.
	ErrBadParams = codec.ErrBadParams
	// A result or a Block does not match its type, exceeds [Limits].Expansion, or could not be
	// encoded.
	ErrBadResult = codec.ErrBadResult
	// The message exceeds a limit of the peer, or the hard limit of this side; send less, or in
	// Blocks.
	ErrTooLarge = codec.ErrTooLarge
	// Too many calls wait or run already; try again later.
	ErrOverloaded = codec.ErrOverloaded
	// A side shuts down or is lost; call on another session.
	ErrUnavailable = codec.ErrUnavailable
	// The handler panicked, or the encoding of a value; the callee's log has the location.
	ErrPanicked = codec.ErrPanicked
	// One side broke the protocol, and the session ended.
	ErrProtocol = codec.ErrProtocol
	// The session was closed, or its Wire failed.
	ErrSessionClosed = codec.ErrSessionClosed
	// The session exceeded its hard limit and ended.
	ErrHardLimit = codec.ErrHardLimit
	// The session stayed at its soft limit for too long, or the application did not take the
	// messages that a call had requested.
	ErrStalled = codec.ErrStalled
	// The peer speaks another protocol, or is too slow.
	ErrHandshake = codec.ErrHandshake
	// A side sent more Blocks or calls than it was granted.
	ErrWindow = codec.ErrWindow
	// The peer lacks the permission.
	ErrUnauthorized = codec.ErrUnauthorized
	// The receiver stopped the stream.
	ErrStopped = codec.ErrStopped
	// The call of this pipe or stream has succeeded.
	ErrPipeClosed = pipe.ErrClosed
	// This side has ended its stream already, by CloseSend.
	ErrEnded = pipe.ErrEnded
)

// Repeatable reports whether the call that failed with err certainly did not run. Then it can be
// made again, here or on another session, without running twice. Repeatable is true for calls that
// never left this side and for calls that the peer rejected.
func Repeatable(err error) bool { return codec.Repeatable(err) }

// RetryAfter returns the advised delay before the call that failed with err is made again. It
// returns ok only for an ErrOverloaded that has an advice. The delay is an hour at most, even if
// the peer advised more. See [Retry].
func RetryAfter(err error) (d time.Duration, ok bool) { return codec.RetryAfter(err) }

// here returns the place, as file:line, of the program's call of this package.
func here() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !isLibrary(f) || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}

// library is the directory of this package. The names of functions are not sufficient: a closure of
// an inlined function has the name of the caller.
var library = func() string {
	_, file, _, _ := runtime.Caller(0)
	return path.Dir(file)
}()

// below is the common prefix of function names in packages below this one, which may be in other
// directories: some are modules of their own.
const below = "github.com/asterisque-go/asterisque/"

// isLibrary reports whether f runs code of this package, or of one below it that calls this one on
// behalf of a program. Tests are programs.
func isLibrary(f runtime.Frame) bool {
	ours := path.Dir(f.File) == library || strings.HasPrefix(f.Function, below)
	return ours && !strings.HasSuffix(f.File, "_test.go")
}

// beginOf returns the begin of a function, as file:line.
func beginOf(function any) string {
	pc := reflect.ValueOf(function).Pointer()
	file, line := runtime.FuncForPC(pc).FileLine(pc)
	return fmt.Sprintf("%s:%d", file, line)
}
