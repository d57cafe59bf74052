package smuxwire

import (
	"fmt"
	"math"

	"github.com/xtaci/smux"
)

const (
	// bytes of the largest smux frame that is sent; they stay in the processor's cache
	frameSize = 32 << 10
	// bytes that version 2 of smux may send on a stream before it gets a window
	initialWindow = 256 << 10
)

// Option changes a [Mux].
type Option func(*config)

type config struct {
	version int // of smux
	wires   int
	window  int
	waiting int // wires of the peer that can wait for Accept
}

// WithWires sets how many wires a Mux can have at once, whichever side opened them: 1 or more, 128
// by default. A further Wire of the peer is closed at once. The product with the window must be
// less than 2 GiB.
func WithWires(n int) Option {
	return func(c *config) { c.wires = n }
}

// WithWindow sets how many bytes of a Wire the peer may send before they are read: 256 KiB, the
// minimum and the default, or more. A Wire transfers at most a window per round trip, so a path
// with a long round trip and much bandwidth needs a larger one.
func WithWindow(bytes int) Option {
	return func(c *config) { c.window = bytes }
}

func newConfig(opts []Option) (config, error) {
	c := config{version: 2, wires: 128, window: initialWindow, waiting: -1}
	for _, o := range opts {
		o(&c)
	}
	if c.waiting < 0 {
		c.waiting = max(c.wires, 0)
	}
	switch {
	case c.wires < 1:
		return c, fmt.Errorf("smuxwire: WithWires(%d): there has to be at least one", c.wires)
	case c.window < initialWindow:
		return c, fmt.Errorf("smuxwire: WithWindow(%d): the least is %d, which smux sends before it hears of the window", c.window, initialWindow)
	case c.window > (math.MaxInt32-spare)/c.wires:
		return c, fmt.Errorf("smuxwire: %d wires with windows of %d bytes are 2 GiB or more; lower WithWires or WithWindow", c.wires, c.window)
	}
	return c, nil
}

// spare is the room of the connection beyond all windows, so that it is never full, and window
// updates pass.
const spare = 64 << 10

// smux returns the settings for the library. Version 1 has no windows: there one slow reader fills
// the buffer of the connection, which all streams share, and then blocks all of them. Version 2 has
// a window for each stream, but the library still has the common buffer; so it has to be as large
// as all windows together.
func (c config) smux() *smux.Config {
	s := smux.DefaultConfig()
	s.Version = c.version
	s.MaxFrameSize = frameSize
	s.MaxStreamBuffer = c.window
	s.MaxReceiveBuffer = c.wires*c.window + spare
	return s
}
