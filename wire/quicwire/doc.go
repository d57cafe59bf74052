// Package quicwire is the [wire.Wire] over QUIC (RFC 9000): TLS 1.3 is built in, a connection
// survives a change of its addresses, and a lost packet is repeated sooner than by most TCPs. To
// import it registers the scheme "quic" for [wire.Dial] and [wire.Listen], and so for nodes:
//
//	import _ "github.com/asterisque-go/asterisque/wire/quicwire"
//
//	node.ListenAndServe(ctx, "quic://:5330") // with a certificate, by asterisque.WithTLS
//	node.Dial(ctx, "quic://example.org:5330")
//
// A session is one bidirectional stream. A URL dials a connection with one session; [Dial] returns
// a [Conn] on which several can be opened. A listener accepts both.
//
// # Why a session is one stream
//
// QUIC could give each pipe of a session a stream of its own, so that a lost packet holds up the
// pipes that it belongs to and no others. The session does without. Its own windows and priorities
// keep a slow reader from holding up its neighbours, and an urgent call from waiting behind a bulk
// transfer, over any Wire; and a Wire carries frames in one order, which much of the protocol rests
// on: an Open comes before its Blocks, ids grow, a limit counts all pipes.
//
// The price is paid where packets get lost: what follows a lost packet waits for its repetition,
// whichever call it belongs to. Measured on a path with a round trip of 20 ms and losses of 1 %: 64
// callers fare the same on one stream as on a stream each (21 ms the median, two to two and a half
// round trips for one call in a hundred), because their messages share few packets. An urgent call
// beside a transfer that takes all the path has to give takes 42 ms (median; 120 ms for one in a
// hundred) on the same stream, and 27 ms (65 ms) on another; without losses the difference is 2 ms.
// Whoever needs that on such a path opens a second session on the same [Conn] for the transfer: a
// packet that one session has lost does not hold up another. BenchmarkCallsOverALossyPath and
// BenchmarkCallsBesideBulkOverALossyPath measure it.
//
// # Peers and certificates
//
// [wire.Options].TLS is as for "tls://": the protocol (ALPN) is "asterisque/1" unless it names
// another, a listener needs a certificate, and a client certificate is asked for with ClientAuth.
// QUIC always is TLS 1.3. Wires are [wire.Secure]; tickets to resume TLS sessions are off, so
// certificates are looked at each time. A client learns only after Dial that the listener did not
// like its certificate: its first ReadFrame says so. At the listener, a handshake that failed is a
// Wire whose first ReadFrame returns why.
//
// # Time and memory
//
// A connection that is idle sends a packet every 20 seconds, which keeps the tables of routers
// alive. A peer that has vanished without a word is noticed after 60 seconds, which leaves it to
// the session to notice it sooner.
//
// A Wire buffers what its reader has not taken, up to 512 KiB at first, and up to 4 MiB for a
// reader that keeps up; a writer waits while its peer's buffer is full. All wires of a connection,
// of which there may be 100, buffer 32 MiB together. So no session takes room from another as long
// as those that are not read leave some: 64 that never were, or eight that had kept up before and
// stand still now, take all of it, and the others wait until they are read or closed. A session
// always reads, but for one that stands still at its limits, and that one ends after a minute. Who
// cannot trust the users of one connection that far gives them a connection each.
//
// A node that serves a listener lets each connection in with its first packet, and closes it when
// it has carried no session for the time that a handshake may take. While 16 handshakes are under
// way, a peer that connects has to answer a Retry first, which costs a round trip; so packets with
// forged addresses cost nothing beyond those 16. Connections that stop in the middle of their first
// message cannot be closed before quic-go gives them up, 5 to 10 seconds later: there may be 1,024,
// and 64 of one address. Of the streams of one connection, 16 may be in their handshake; further
// ones are reset. A peer that opens 1,024 in the time for one, while no session comes of any, is
// cut off.
//
// What a Wire buffers is counted in bytes of payload, as QUIC does. A peer that sends one byte in
// each frame, and leaves out the first, makes package quic-go hold a hundred times as much and
// more, and no setting of it prevents that. An idle Wire holds 1 KiB, whatever came before.
//
// Close tells the peer and waits 100 ms at most for the peer to close as well; what was written
// before goes out meanwhile, and for some seconds after. A program that ends sooner may cut it off,
// for there is no operating system behind QUIC that would go on.
//
// Two processes cannot share a QUIC socket, for a packet of a connection to one of them may reach
// the other: it is neither handed over ([wire.ListenerFile]) nor listened at with
// [wire.Options].ReusePort. After a restart the new process listens when the old one has closed.
//
// For bulk transfers the operating system should grant UDP sockets larger buffers: on Linux sysctl
// net.core.rmem_max and net.core.wmem_max, 7500000 or more.
package quicwire
