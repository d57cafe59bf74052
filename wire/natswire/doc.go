// Package natswire is the [wire.Wire] over NATS: programs meet at a name behind a NATS server
// instead of at an address, and neither has to be reachable for the other. An import of the package
// registers the schemes "nats" and "nats+tls" for [wire.Dial] and [wire.Listen], and so for nodes:
//
//	import _ "github.com/asterisque-go/asterisque/wire/natswire"
//
//	node.ListenAndServe(ctx, "nats://user:password@nats.example.org:4222/orders")
//	node.Dial(ctx, "nats://user:password@nats.example.org:4222/orders")
//
// The path of the URL is the name, which is part of a NATS subject: it has no spaces, no '*' and
// '>', and a dot only between other characters. The user info of the URL is "user:password" or, as
// package nats has it, a token alone. For other credentials, servers with TLS and all other
// features of package nats, connect to NATS in the application and call [Dial] and [Listen], or
// register a [Transport] with options.
//
// # Names
//
// Several listeners may be at one name, in one process or several; NATS selects one of them for
// each Wire. They have to agree about TLS. A dial to a name without a listener fails at once with
// [ErrNobody]. A Connection of a node dials again by itself.
//
// # Permissions
//
// The NATS user of a listener has to be allowed to subscribe to "asterisque.wire.<name>", the user
// of a dialling side to publish to it, and both to subscribe and to publish to inboxes: "_INBOX.>",
// or the prefix that the options of package nats set. If the server does not allow that, Dial and
// Listen fail with an error that wraps nats.ErrPermissionViolation. A listener that may not publish
// to inboxes cannot answer; the dial then times out.
//
// Each direction of a Wire has an inbox with 130 random bits in its name. A NATS user with
// knowledge of the name, for example through a permission to subscribe to all inboxes or to the
// requests at a name, can end the Wire by publishing to it. Without TLS between the ends, such a
// user can also read messages, and forge messages of one end to the other.
//
// # TLS between the ends
//
// With "nats+tls" the two ends use TLS with each other, through NATS, so that the server need not
// be trusted: it can delay messages or end the Wire, but neither read nor change them.
// [wire.Options].TLS is as for "tls://", certificates of clients included, and wires are
// [wire.Secure]. Unless it names a server, the certificate of the listener has to be for the name
// behind the server, as orders above. TLS between a program and its NATS server is another thing:
// nats.Secure and nats.RootCAs of package nats.
//
// A Wire without TLS between its ends is not private ([wire.IsPrivate]), even with a NATS server on
// this machine. A node with resumable sessions refuses to listen on such a Wire, unless
// Access.PlainCredentials allows it.
//
// # Message loss
//
// NATS delivers at most once: it drops messages that a slow consumer cannot take, and messages in
// flight when a connection is lost. So the messages of a Wire are numbered, and at a gap, a
// repetition or a number that is wrong the Wire fails, with a [*SequenceError]. When the connection
// to the server is lost, all wires over it fail at once with [ErrDisconnected], though package nats
// connects again by itself. A resumable session continues over the next Wire, with nothing lost.
//
// Each end sends a keepalive every 5 seconds, by a message that the server answers if it has no
// reader. So the end of a peer's connection is detected after 5 seconds, and any other loss of the
// peer after 15 ([ErrPeerGone]).
//
// A session may detect it sooner.
//
// # Time and memory
//
// A message has up to 32 KiB, or the max_payload of the server if that is less, which has to be 512
// bytes at least. Frames of any size are cut and put together again. Frames that queue while a
// message is written share the next message; no frame is delayed to fill a message.
//
// A Wire holds up to 1 MiB that its reader has not taken, where a message counts 273 bytes more
// than its content; meanwhile Write of the peer blocks. A hostile peer that sends more ends the
// Wire; package nats holds at most 2 MiB of it. An idle Wire holds no message. A frame is also
// bounded by the limit of ReadFrame.
//
// A Wire that is dialled by URL has its own connection to the server. The wires of a listener share
// one, and so do those over a connection of the application. Each end of a Wire has one
// subscription, with a goroutine of package nats. Each dial and each listener has one more
// goroutine.
//
// A listener holds 128 wires that are not accepted yet, and refuses more ([ErrRefused]); 1,024
// requests with 256 KiB can wait for its answer. A node that serves the listener admits a Wire
// before it spends any resources on it. All peers of one listener have one address, and so one
// share of the limits that a node has per address; only identities distinguish them. A request
// without a peer behind it costs a subscription for a moment, until the server reports it.
//
// Close blocks for up to 100 ms until package nats has taken the closing message. If the socket to
// the server is stuck, a ReadFrame or a write returns when package nats considers it lost: see
// nats.FlusherTimeout, a minute by default.
package natswire
