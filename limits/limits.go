// Package limits bounds what waits in one direction of a session.
//
// A [Counter] compares what is held with a soft and a hard limit. It can be used alone. The other
// types are how a session keeps what it promises: a [Plan] divides the soft limit into shares, a
// [Room] and [Opens] promise these to the peer, and a [Tally] adds up what many sessions hold.
package limits

import (
	"fmt"
	"math"
)

// The largest values that a Counter can tell apart, and so the largest limits.
const (
	MaxMessages = 1<<messageBits - 1
	MaxBytes    = min(1<<byteBits-1, math.MaxInt)
)

// Amount is a number of messages and the bytes that they hold. What messages need besides their
// content is part of that. In a limit, 0 means no limit.
type Amount struct {
	Messages int `json:"messages"`
	Bytes    int `json:"bytes"`
}

func (a Amount) String() string {
	switch {
	case a.Bytes == 0:
		return fmt.Sprintf("%d messages", a.Messages)
	case a.Messages == 0:
		return fmt.Sprintf("%d bytes", a.Bytes)
	}
	return fmt.Sprintf("%d messages, %d bytes", a.Messages, a.Bytes)
}

// Limits are the marks of one direction of one session.
type Limits struct {
	Soft Amount // from here on reading stops, or senders wait
	Low  Amount // at or below this they go on; 0 means half of Soft
	Hard Amount // beyond this the session is closed by force
}

// Check returns l with its defaults filled in. The error names the mark that does not fit: a value
// out of range, a soft mark at or above its hard one, a low mark at or above its soft
// one.
func (l Limits) Check() (Limits, error) {
	messages, err := checkMarks("messages", l.Soft.Messages, l.Low.Messages, l.Hard.Messages, MaxMessages)
	if err != nil {
		return l, err
	}
	bytes, err := checkMarks("bytes", l.Soft.Bytes, l.Low.Bytes, l.Hard.Bytes, MaxBytes)
	if err != nil {
		return l, err
	}
	l.Low = Amount{messages, bytes}
	return l, nil
}

// checkMarks checks the marks of one unit and returns its low mark.
func checkMarks(unit string, soft, low, hard, most int) (int, error) {
	for _, m := range []struct {
		name  string
		value int
	}{{"soft", soft}, {"low", low}, {"hard", hard}} {
		if m.value < 0 || m.value > most {
			return 0, fmt.Errorf("limits: %s limit of %d %s is outside 0..%d (0 means none)", m.name, m.value, unit, most)
		}
	}
	if soft > 0 && hard > 0 && soft >= hard {
		return 0, fmt.Errorf("limits: soft limit of %d %s must be below the hard limit of %d", soft, unit, hard)
	}
	if low > 0 && low >= soft {
		return 0, fmt.Errorf("limits: low mark of %d %s must be below the soft limit of %d", low, unit, soft)
	}
	if low == 0 {
		low = soft / 2
	}
	return low, nil
}

// State tells how full one direction of a session is.
//
//	Ready ◄──────► Congested    the transport takes no more, or does again
//	 │  ▲            │  ▲
//	 ▼  │            ▼  │       the soft limit is reached; what waits falls to the low mark
//	 └──┴─── Soft ───┴──┘
//	          │
//	          ▼
//	         Hard               beyond the hard limit, from any state, and for good
type State uint8

const (
	Ready     State = iota // messages leave, or are taken, as they come
	Congested              // the transport takes no more for the moment; what is sent waits
	// at the soft limit: senders wait, or reading has stopped, until the low mark is reached
	Soft
	Hard // beyond the hard limit: the session ends
)

func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Congested:
		return "congested"
	case Soft:
		return "soft"
	case Hard:
		return "hard"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText implements encoding.TextMarshaler: a State is its String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error names what is no State.
func (s *State) UnmarshalText(text []byte) error {
	for _, state := range []State{Ready, Congested, Soft, Hard} {
		if state.String() == string(text) {
			*s = state
			return nil
		}
	}
	return fmt.Errorf("limits: %q is no state", text)
}
