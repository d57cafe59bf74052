// Package smuxwire carries many sessions over one connection, with smux version 2: each Wire is a
// stream of it, opened in no time, with a window of its own. So a session whose reader is slow
// holds up itself and none of the others, which the limits of each session and the window of each
// stream see to together.
//
// Importing the package registers the schemes "smux", over TCP, and "smux+tls" with
// [wire.Register]:
//
//	import _ "github.com/asterisque-go/asterisque/wire/smuxwire"
//
//	sess, err := node.Dial(ctx, "smux://127.0.0.1:5331")
//	err := node.ListenAndServe(ctx, "smux://127.0.0.1:5331")
//
// Wires that are dialled to the same address, with the same *tls.Config, share one connection,
// which is closed when the last of them is. [Client] and [Server] make a [Mux] of any connection,
// for programs that decide for themselves what shares what. Either side can open wires.
//
// # When to use it
//
// One session runs any number of calls at once; it needs no second one for speed, nor for its
// streams. Several are for what has to be apart: users behind a gateway, each with limits, services
// and an end of its own. Every message crosses two more goroutines than over TCP, and all wires
// share the connection's fate and its order of arrival.
//
// # Concurrency and errors
//
// The methods of a Mux may be called concurrently. When its connection fails, or the peer does not
// speak version 2 of smux, all its wires fail with the reason; in good order, with io.EOF, ends
// only a Wire that the peer has closed.
//
// # Limits
//
// A Mux holds at most [WithWires] wires, and for each of them at most [WithWindow] bytes that have
// arrived and were not read. To send more than a window admits breaks the protocol, and ends the
// connection.
//
// A frame of smux takes memory besides its payload, and a peer that keeps to its windows may send
// as many small ones as they have bytes. So a Wire may have one for each 64 bytes of its window
// that was not read, 4,096 by default. While one has as many, the connection is not read, and none
// of its wires gets anything: a slow reader holds up the others if its peer sends less than 64
// bytes at a time. A session is no slow reader, but for one that stands still, and ends for it.
//
// In all these are wires × window bytes of payloads, and as much once more for frames: 64 MiB by
// default, and up to twice that in memory, since the library rounds up what it takes. Besides, a
// connection has some 200 KiB, and an idle Wire 2 KiB, and up to 128 KiB if it once had many
// frames.
//
// Both sides send a few bytes every 10 seconds, and give up a connection from which nothing has
// come for 30.
//
// A node that serves a listener lets each connection in before anything is spent on it, and closes
// it when it has carried no session for the time that a handshake may take. Of the wires on one
// connection, 16 may be in their handshake while half of the node's places are taken; further ones
// are closed at once, so a program that begins many sessions at the same time tries again then. A
// peer that opens 1,024 in that time, while no session comes of any, is cut off, as is one that
// opens 1,024 in a row which there is no room for.
//
// With TLS, the application protocol (ALPN) is "asterisque.smux/1", so that "tls" and "smux+tls" do
// not talk to each other by mistake.
package smuxwire

import (
	"fmt"
	"math"

	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/wire"
)

func init() {
	// An error means that the program has a transport of its own for the scheme already, which then
	// stays.
	wire.Register("smux", &transport{shared: map[key]*dialled{}})
	wire.Register("smux+tls", &transport{secure: true, shared: map[key]*dialled{}})
}

// Option changes a [Mux].
type Option func(*config)

type config struct {
	version int // of smux
	wires   int
	window  int
	waiting int // wires of the peer that can wait for Accept
}

const (
	// bytes of the largest smux frame that is sent; they stay in the processor's cache
	frameSize = 32 << 10
	// bytes that version 2 of smux may send on a stream before it hears of the window
	initialWindow = 256 << 10
)

// WithWires sets how many wires a Mux can have at once, whichever side opened them: 1 or more, 128
// by default. What the peer opens beyond that is closed at once. The product with the window must
// be less than 2 GiB.
func WithWires(n int) Option {
	return func(c *config) { c.wires = n }
}

// WithWindow sets how many bytes of a Wire the peer may send before they are read: 256 KiB, the
// least and the default, or more. A Wire moves at most a window per round trip, so long ways with
// much bandwidth need a larger one.
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

// spare is what the connection can take beyond all windows, so that it is never full, and messages
// about windows come through.
const spare = 64 << 10

// smux returns the settings for the library. Version 1 has no windows: there the buffer of the
// connection, which all streams share, is filled by one slow reader, and then nobody gets anything.
// Version 2 has a window for each stream, but the library still has the common buffer; so it has to
// be as large as all windows together.
func (c config) smux() *smux.Config {
	s := smux.DefaultConfig()
	s.Version = c.version
	s.MaxFrameSize = frameSize
	s.MaxStreamBuffer = c.window
	s.MaxReceiveBuffer = c.wires*c.window + spare
	return s
}
