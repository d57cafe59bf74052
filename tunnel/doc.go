// Package tunnel carries bytes through a session as a [net.Conn]: HTTP, SSH, gRPC, or any other
// protocol over connections, beside the calls of the session, with separate priority and window.
//
//	// on the serving side: to be complete, as any Service, before its node dials or listens
//	web := tunnel.Listen(service, 80, "web")
//	go http.Serve(web, handler)
//
//	// on the other side, independent of which side has dialled the session
//	conn, err := tunnel.Dial(ctx, session, 80, asterisque.WithPriority(-10))
//
// A [Conn] is one call of a function, and its bytes are the Blocks of that call. [Dial] makes the
// call, and [Listen] registers the function: every call of it is a connection for Accept. So a
// machine that accepts no connections can serve the peer that it has dialled itself, as
// examples/reverse shows. [NewConn] makes a connection of any other pipe.
//
// # The cost of a connection
//
// A handler runs for as long as its connection is open, and occupies a worker of its session, also
// while it waits for Accept. So a peer can have as many connections open as its session has workers
// ([asterisque.Workers], 1,024 by default), which are then missing for other calls. To bound the
// connections of all peers together, give Listen [asterisque.WithConcurrency]: further connections
// wait without a worker and without being accepted. The alternative is a separate session for the
// tunnel.
//
// An idle connection holds some 10 KiB, both ends and the goroutine of the handler included. On the
// dialling side it has no goroutine. It does not block other connections: a second after the last
// byte, its windows shrink to their initial size, so that a pool of a thousand open connections
// leaves room for the next.
//
// # Flow control
//
// Written bytes wait as in [pipe.Pipe.Send]: for the window of the connection, which grows with its
// use, and while the session is at its outbound soft limit. A reader that stops blocks only its own
// connection. Bytes are never dropped: [Dial] ignores a loss rate, and if a foreign peer drops
// Blocks, the reader fails with [ErrMissing].
//
// [asterisque.Session.Shutdown] waits for connections as for all calls. If sessions are resumed,
// connections continue over the next Wire; otherwise they end with their session.
package tunnel
