package asterisque

import (
	"fmt"
	"time"
)

// Wait counts the waits for one resource.
type Wait struct {
	Now   int           `json:"now"`    // present waits
	Bytes int           `json:"bytes"`  // bytes that these hold: their messages are encoded
	Times uint64        `json:"times"`  // waits since the beginning
	For   time.Duration `json:"for_ns"` // total time of waits that have ended
}

// String returns w for logs.
func (w Wait) String() string {
	return fmt.Sprintf("%d now with %d bytes, %d times, %v", w.Now, w.Bytes, w.Times, w.For)
}

// ended returns the part of w that remains when no goroutine waits any more.
func (w Wait) ended() Wait { return Wait{Times: w.Times, For: w.For} }

func (w *Wait) add(o Wait) {
	w.Now += o.Now
	w.Bytes += o.Bytes
	w.Times += o.Times
	w.For += o.For
}

// Outstanding is the use of the window of a function; see [WithMaxOutstanding].
type Outstanding struct {
	// maximum of outstanding calls; 0: no limit, and then the other fields are not counted
	Window  int
	Calls   int // made, and not answered
	Waiting int // calls that wait for the window
	Bytes   int // held by these: their parameters are encoded
}

// Full reports whether another call would have to wait.
func (o Outstanding) Full() bool { return o.Window > 0 && o.Calls >= o.Window }
