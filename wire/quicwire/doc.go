// Package quicwire is the [wire.Wire] over QUIC (RFC 9000): TLS 1.3 is built in, a connection
// survives a change of its addresses, and a lost packet is retransmitted sooner than by most TCPs.
// An import of the package registers the scheme "quic" for [wire.Dial] and [wire.Listen], and so
// for nodes:
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
// QUIC could give each pipe of a session its own stream, so that a lost packet delays only the
// pipes that it belongs to. The session does not use this. Its own windows and priorities keep a
// slow reader from delaying its neighbours, and an urgent call from waiting behind a bulk transfer,
// over any Wire. A Wire also carries frames in one order, which much of the protocol depends on: an
// Open precedes its Blocks, ids grow, a limit counts all pipes.
//
// The cost shows on lossy paths: all data behind a lost packet waits for its retransmission,
// whichever call it belongs to. Measured on a path with a round trip of 20 ms and losses of 1 %: 64
// callers fare the same on one stream as on a stream each (21 ms the median, two to two and a half
// round trips for one call in a hundred), because their messages share few packets. An urgent call
// beside a transfer that uses the whole path takes 42 ms (median; 120 ms for one in a hundred) on
// the same stream, and 27 ms (65 ms) on another; without losses the difference is 2 ms. An
// application that needs this on such a path opens a second session on the same [Conn] for the
// transfer: a packet lost by one session does not delay the other.
//
// BenchmarkCallsOverALossyPath and BenchmarkCallsBesideBulkOverALossyPath measure it.
//
// # Peers and certificates
//
// [wire.Options].TLS is as for "tls://": the protocol (ALPN) is "asterisque/1" unless it names
// another, a listener needs a certificate, and a client certificate is asked for with ClientAuth.
// QUIC always is TLS 1.3. Wires are [wire.Secure]; tickets to resume TLS sessions are disabled, so
// certificates are verified each time. A client learns only after Dial that the listener has
// rejected its certificate: its first ReadFrame returns the error. At the listener, a failed
// handshake is a Wire that returns the error from its first ReadFrame.
//
// # Time and memory
//
// An idle connection sends a packet every 20 seconds, which keeps the tables of routers alive. A
// peer that has vanished is considered lost after 60 seconds; a session usually detects it sooner.
//
// A Wire buffers the bytes that its reader has not taken, up to 512 KiB at first, and up to 4 MiB
// for a reader that keeps up; a writer blocks while its peer's buffer is full. All wires of a
// connection, of which there may be 100, buffer 32 MiB together. So no session takes room from
// another as long as the unread sessions leave some: 64 that were never read, or eight that had
// kept up before and have stopped now, take all of it, and the rest block until those are read or
// closed. A session always reads, except one that is blocked at its limits, and that one ends after
// a minute. If the users of one connection cannot be trusted that far, give each its own
// connection.
//
// A node that serves a listener admits each connection with its first packet, and closes it when it
// has carried no session for the time limit of a handshake.
//
// While 16 handshakes are in progress, a peer that connects has to answer a Retry first, which
// costs a round trip; so packets with forged addresses cost nothing beyond those 16. A connection
// that stops in the middle of its first message cannot be closed before quic-go times it out, 5 to
// 10 seconds later: there may be 1,024, and 64 of one address. On one connection, 16 streams may be
// in their handshake; further ones are reset. A peer that opens 1,024 within the time of one,
// without a session on any, is disconnected.
//
// The buffer of a Wire is counted in bytes of payload, as in QUIC. A peer that sends one byte in
// each frame, and leaves out the first, makes package quic-go hold a hundred times as much and
// more; no setting of quic-go prevents that. An idle Wire holds 1 KiB, whatever the size of earlier
// frames.
//
// Close notifies the peer and blocks for at most 100 ms until the peer closes as well; data written
// before is sent meanwhile, and for some seconds after. A program that exits sooner may lose that
// data: QUIC runs in the process, so no operating system continues to send it.
//
// Two processes cannot share a QUIC socket, for a packet of a connection to one of them may reach
// the other: it is neither handed over ([wire.ListenerFile]) nor listened at with
// [wire.Options].ReusePort. After a restart the new process listens when the old one has closed.
//
// For bulk transfers the operating system should grant UDP sockets larger buffers: on Linux sysctl
// net.core.rmem_max and net.core.wmem_max, 7500000 or more.
package quicwire
