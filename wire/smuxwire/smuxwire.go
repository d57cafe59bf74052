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
	"github.com/asterisque-go/asterisque/wire"
)

func init() {
	// An error means that the program has a transport of its own for the scheme already, which then
	// stays.
	wire.Register("smux", &smuxTransport{shared: map[key]*dialled{}})
	wire.Register("smux+tls", &smuxTransport{secure: true, shared: map[key]*dialled{}})
}
