// Package smuxwire carries many sessions over one connection, with smux version 2: each Wire is a
// stream of it, opened without a round trip, with its own window. So a session with a slow reader
// delays only itself: the limits of each session and the window of each stream ensure that
// together.
//
// An import of the package registers the schemes "smux", over TCP, and "smux+tls" with
// [wire.Register]:
//
//	import _ "github.com/asterisque-go/asterisque/wire/smuxwire"
//
//	sess, err := node.Dial(ctx, "smux://127.0.0.1:5331")
//	err := node.ListenAndServe(ctx, "smux://127.0.0.1:5331")
//
// Wires that are dialled to the same address, with the same *tls.Config, share one connection,
// which is closed when the last of them is. [Client] and [Server] make a [Mux] of any connection,
// for applications that assign wires to connections themselves. Either side can open wires.
//
// # When to use it
//
// One session runs any number of calls at once; a second one improves neither speed nor streams.
// Several sessions are for users that have to be kept apart: users behind a gateway, each with its
// own limits, services and end. Every message crosses two more goroutines than over TCP, and all
// wires share the fate of the connection and its order of delivery.
//
// # Concurrency and errors
//
// The methods of a Mux may be called concurrently. When its connection fails, or the peer does not
// use version 2 of smux, all its wires fail with the reason. Only a Wire that the peer has closed
// ends gracefully, with io.EOF.
//
// # Limits
//
// A Mux holds at most [WithWires] wires, and for each of them at most [WithWindow] unread bytes.
// A peer that exceeds a window breaks the protocol, which ends the connection.
//
// A frame of smux takes memory besides its payload, and a peer within its windows may send up to
// one frame per byte. So a Wire may have one unread frame for each 64 bytes of its window, 4,096 by
// default. At that limit, the connection is not read, and all its wires block: a slow reader delays
// all wires if its peer sends less than 64 bytes at a time. A session keeps reading, and ends if
// its application takes nothing for too long.
//
// In total, a Mux holds up to wires × window bytes of payloads, and the same amount again for
// frames: 64 MiB by default, and up to twice that in memory, since the library rounds up its
// allocations. In addition, a connection takes some 200 KiB, and an idle Wire 2 KiB, or up to 128
// KiB if it once had many frames.
//
// Both sides send a few bytes every 10 seconds, and consider a connection lost from which nothing
// has arrived for 30.
//
// A node that serves a listener admits each connection before it spends resources on it, and
// closes it when it has carried no session for the time limit of a handshake. Once half of the
// node's places are taken, one connection may have at most 16 wires in their handshake. Further
// wires are closed at once, so a program that starts many sessions at the same time then has to
// retry. A peer that opens 1,024 within the time limit of a handshake, without a session on any, is
// disconnected; so is one that opens 1,024 in a row beyond the limit.
//
// With TLS, the application protocol (ALPN) is "asterisque.smux/1", so that "tls" and "smux+tls"
// do not connect to each other by mistake.
package smuxwire

import (
	"github.com/asterisque-go/asterisque/wire"
)

func init() {
	// An error means that the application has registered its own transport for the scheme, which
	// then stays.
	wire.Register("smux", &smuxTransport{shared: map[muxKey]*sharedConn{}})
	wire.Register("smux+tls", &smuxTransport{secure: true, shared: map[muxKey]*sharedConn{}})
}
