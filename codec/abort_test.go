package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

var sentinels = map[Code]*Abort{
	Canceled: ErrCanceled, Expired: ErrExpired, NoFunction: ErrNoFunction, BadParams: ErrBadParams, BadResult: ErrBadResult,
	TooLarge: ErrTooLarge, Overloaded: ErrOverloaded, Unavailable: ErrUnavailable, Panicked: ErrPanicked, Protocol: ErrProtocol,
	SessionClosed: ErrSessionClosed, HardLimit: ErrHardLimit, Stalled: ErrStalled, Handshake: ErrHandshake,
	WindowViolation: ErrWindow, Unauthorized: ErrUnauthorized, Stopped: ErrStopped,
}

// Codes have the numbers of the specification.
func TestCode_Numbers(t *testing.T) {
	codes := []Code{
		Failed, Canceled, Expired, NoFunction, BadParams, BadResult, TooLarge, Overloaded, Unavailable, Panicked, Protocol,
		SessionClosed, HardLimit, Stalled, Dropped, Handshake, WindowViolation, Unauthorized, Stopped,
	}
	for i, c := range codes {
		require.EqualValues(t, i+1, c, c)
		require.NotEmpty(t, c.String())
	}
	require.Len(t, codeNames, len(codes)+1)
}

// A code without a name is shown as its number.
func TestCode_Unnamed(t *testing.T) {
	require.Equal(t, "code 0, code 20, code 1000, code -5", fmt.Sprintf("%v, %v, %v, %v", Code(0), Code(20), Code(1000), Code(-5)))
}

// Each error matches its own code only.
func TestErrors_MatchOneCode(t *testing.T) {
	require.Len(t, sentinels, int(Stopped-Canceled), "Failed and Dropped have none")
	for code := range sentinels {
		err := fmt.Errorf("wrapped: %w", &Abort{Code: code, Message: "from somewhere", Remote: true, Ran: Refused})
		for other, sentinel := range sentinels {
			require.Equal(t, code == other, errors.Is(err, sentinel), "%v is %v", code, other)
		}
	}
}

// Canceled and Expired are also the errors of package context.
func TestAbort_IsContextError(t *testing.T) {
	require.ErrorIs(t, ErrCanceled, context.Canceled)
	require.ErrorIs(t, ErrExpired, context.DeadlineExceeded)
	require.NotErrorIs(t, ErrCanceled, context.DeadlineExceeded)
	require.NotErrorIs(t, ErrExpired, context.Canceled)
	require.NotErrorIs(t, ErrOverloaded, context.Canceled)
}

// Error has all fields of the Abort.
func TestAbort_Error(t *testing.T) {
	for want, a := range map[string]*Abort{
		"asterisque: expired":                                     {Code: Expired},
		"asterisque: expired: 3 s were not enough":                {Code: Expired, Message: "3 s were not enough"},
		"asterisque: code 1000: out of stock (said by the peer)":  {Code: 1000, Message: "out of stock", Remote: true},
		"asterisque: unavailable: connection lost: EOF":           {Code: Unavailable, Message: "connection lost", Cause: io.EOF},
		"asterisque: unavailable: EOF":                            {Code: Unavailable, Cause: io.EOF},
		"asterisque: failed: EOF":                                 {Code: Failed, Message: "EOF", Cause: io.EOF},
		"asterisque: session closed: the wire failed: b":          {Code: SessionClosed, Message: "the wire failed: b", Cause: errors.New("b")},
		"asterisque: overloaded: a: b (said by the peer)":         {Code: Overloaded, Message: "a", Cause: errors.New("b"), Remote: true},
		"asterisque: protocol violated: no array: unexpected EOF": {Code: Protocol, Message: "no array", Cause: io.ErrUnexpectedEOF},
	} {
		require.EqualError(t, a, want)
	}
}

func TestAbort_Unwrap(t *testing.T) {
	require.ErrorIs(t, &Abort{Code: Unavailable, Cause: io.EOF}, io.EOF)
	require.NoError(t, ErrCanceled.Unwrap())
}

// Withf does not change the error that it is called on.
func TestWithf_KeepsSentinel(t *testing.T) {
	a := ErrOverloaded.Withf("%d orders wait", 7)
	a.Remote = true
	require.EqualError(t, a, "asterisque: overloaded: 7 orders wait (said by the peer)")
	require.Equal(t, &Abort{Code: Overloaded}, ErrOverloaded)
	require.ErrorIs(t, a, ErrOverloaded)
}

// badFrame is an error about a frame, like the errors of package message.
type badFrame struct{}

func (badFrame) Error() string        { return "bad frame" }
func (badFrame) Is(target error) bool { return target == ErrProtocol }

// AbortOf finds the code of an error.
func TestAbortOf_Code(t *testing.T) {
	boom := errors.New("boom")
	timeout := fmt.Errorf("ask the bank: %w", context.DeadlineExceeded)
	frame := badFrame{}
	for _, tt := range []struct {
		name string
		err  error
		want *Abort
	}{
		{"an abort", ErrStopped, ErrStopped},
		{"an abort inside another error", fmt.Errorf("in: %w", ErrStopped), ErrStopped},
		{"an abort inside an abort", &Abort{Code: Failed, Cause: ErrStopped}, &Abort{Code: Failed, Cause: ErrStopped}},
		{"a cancelled context", context.Canceled, &Abort{Code: Canceled, Message: "context canceled", Cause: context.Canceled}},
		{"a deadline", timeout, &Abort{Code: Expired, Message: "ask the bank: context deadline exceeded", Cause: timeout}},
		{"a bad frame", frame, &Abort{Code: Protocol, Message: "bad frame", Cause: frame}},
		{"anything else", boom, &Abort{Code: Failed, Message: "boom", Cause: boom}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, AbortOf(tt.err))
		})
	}
	require.Nil(t, AbortOf(nil))
}

// AbortOf survives a nil *Abort as an error.
func TestAbortOf_NilAbort(t *testing.T) {
	none := error(AbortOf(nil))
	require.Equal(t, &Abort{Code: Failed, Message: "asterisque: nil Abort", Cause: none}, AbortOf(none))
	require.Equal(t, Failed, AbortOf(fmt.Errorf("in: %w", none)).Code)
	require.False(t, Repeatable(none))
	require.NotErrorIs(t, ErrExpired, none)
}

// Only calls that did not run are repeatable.
func TestRepeatable_NotRun(t *testing.T) {
	for ran, want := range map[Ran]bool{MaybeRan: false, NeverSent: true, Refused: true} {
		require.Equal(t, want, Repeatable(&Abort{Code: Unavailable, Ran: ran}), ran)
		require.Equal(t, want, Repeatable(fmt.Errorf("in: %w", &Abort{Code: Unavailable, Ran: ran})), ran)
	}
	require.False(t, Repeatable(nil))
	require.False(t, Repeatable(io.EOF))
}

func TestRan_String(t *testing.T) {
	require.Equal(t, "may have run, never sent, refused, Ran(3)", fmt.Sprintf("%v, %v, %v, %v", MaybeRan, NeverSent, Refused, Ran(3)))
}
