// Package tunnel lets bytes run through a session as a [net.Conn]: HTTP, SSH, gRPC, or whatever
// else speaks over connections, beside the calls of the session, with a priority and a window of
// their own.
//
//	// on the side that serves: as complete as any Service before its node dials or listens
//	web := tunnel.Listen(service, 80, "web")
//	go http.Serve(web, handler)
//
//	// on the other side, whichever of the two has dialled the session
//	conn, err := tunnel.Dial(ctx, session, 80, asterisque.WithPriority(-10))
//
// A [Conn] is one call of a function, and its bytes are the Blocks of that call. [Dial] makes the
// call, and [Listen] registers the function: every call of it is a connection for Accept. So a
// machine that nobody can connect to serves the peer that it has dialled itself, as
// examples/reverse shows. [NewConn] makes a connection of any other pipe.
//
// # What a connection costs
//
// A handler stays for as long as its connection is open, and occupies a worker of its session, also
// while it waits for Accept. So a peer can have as many connections open as its session has workers
// ([asterisque.Workers], 1,024 by default), which its other calls then lack. Bound the connections
// of all peers together by giving Listen [asterisque.WithConcurrency], of which those beyond wait
// without a worker and without being accepted; or give what is tunnelled a session of its own.
//
// An idle connection holds some 10 KiB, both ends and the goroutine of the handler included. On the
// side that has dialled it has no goroutine. Nor does it hold up others: a second after the last
// byte it has handed back what its windows have grown by, so that a pool of a thousand connections
// that are kept open leaves room for the next.
//
// # Between the bytes and the session
//
// What is written waits as [pipe.Pipe.Send] does: for the window of the connection, which grows
// with its use, and while the session is at its outbound soft limit. A reader that sleeps holds up
// its own connection and nobody else. Bytes are never dropped: [Dial] overrules a loss rate, and a
// reader from whose stream a foreign peer has let Blocks be dropped fails with [ErrMissing].
//
// [asterisque.Session.Shutdown] waits for connections as for all calls. Where sessions are resumed,
// connections go on over the next Wire; otherwise they end with their session.
package tunnel
