package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/asterisque-go/asterisque/wire"
)

// tap shows the frames that a Wire writes. A Wire can be built on another one: this one prints a
// line of text for each frame, and leaves the rest to the one below.
type tap struct {
	wire.Wire
	to  string
	out io.Writer // safe for concurrent use
}

// WriteFrames implements wire.Wire.
func (t tap) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		fmt.Fprintf(t.out, "      → %-9s %-8s%4d bytes  %s\n", t.to, kind(f), len(f), begin(f))
	}
	return t.Wire.WriteFrames(frames)
}

// kind returns the meaning of the second byte of a frame: each is a CBOR array, and its first
// element is the kind of the message.
func kind(frame []byte) string {
	kinds := []string{"Control", "Open", "Block", "Close"}
	if len(frame) < 2 || int(frame[1]) >= len(kinds) {
		return "?"
	}
	return kinds[frame[1]]
}

// begin returns the first bytes of a frame.
func begin(frame []byte) string {
	const some = 12
	if len(frame) <= some {
		return fmt.Sprintf("% x", frame)
	}
	return fmt.Sprintf("% x …", frame[:some])
}

// together makes an io.Writer safe for several goroutines.
type together struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// Write implements io.Writer.
func (t *together) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(p)
}
