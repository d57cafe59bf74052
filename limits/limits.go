// Package limits has the marks for the messages that one direction of a session holds, and the
// states that follow from them.
package limits

import (
	"fmt"
	"math"
)

// MaxMessages and MaxBytes are the largest limits: a session counts messages in 26 bits of a word,
// and their bytes in the other 38.
const (
	MaxMessages = 1<<26 - 1
	MaxBytes    = min(1<<38-1, math.MaxInt)
)

// Amount is a number of messages and their bytes: the content, and 512 bytes for each message. In a
// limit, 0 means no limit.
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

// Limits are the marks for one direction of one session.
type Limits struct {
	Soft Amount // at or above this mark, reading stops and senders wait
	Low  Amount // at or below this mark, reading and senders resume; 0 means half of Soft
	Hard Amount // above this mark the session ends
}

// Check returns l with its defaults filled in. The error names the invalid mark: a value out of
// range, a soft mark at or above the hard one, or a low mark at or above the soft one.
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

// State is the fill level of one direction of a session.
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
	Ready     State = iota // messages are sent, or accepted, at once
	Congested              // the transport is blocked; messages wait to be sent
	// at the soft limit: senders wait, or reading has stopped, until the low mark is reached
	Soft
	Hard // above the hard limit: the session ends
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

// UnmarshalText implements encoding.TextUnmarshaler. The error names text that is no State.
func (s *State) UnmarshalText(text []byte) error {
	for _, state := range []State{Ready, Congested, Soft, Hard} {
		if state.String() == string(text) {
			*s = state
			return nil
		}
	}
	return fmt.Errorf("limits: %q is no state", text)
}
