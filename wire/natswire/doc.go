// Package natswire is the [wire.Wire] over NATS: programs meet at a name behind a NATS server
// instead of at an address, and neither has to be reachable for the other. To import it registers
// the schemes "nats" and "nats+tls" for [wire.Dial] and [wire.Listen], and so for nodes:
//
//	import _ "github.com/asterisque-go/asterisque/wire/natswire"
//
//	node.ListenAndServe(ctx, "nats://user:password@nats.example.org:4222/orders")
//	node.Dial(ctx, "nats://user:password@nats.example.org:4222/orders")
//
// The path of the URL is the name, which is part of a NATS subject: it has no spaces, no '*' and
// '>', and a dot only between other characters. The user info of the URL is "user:password" or, as
// package nats has it, a token alone. For other credentials, servers with TLS and all else that
// package nats can do, connect yourself and call [Dial] and [Listen], or register a [Transport]
// with options.
//
// # Names
//
// Several listeners may be at one name, in one process or several; NATS draws one of them for each
// Wire. They have to agree about TLS. Whoever dials a name with nobody is told at once, by
// [ErrNobody]. A Connection of a node dials again by itself.
//
// # Who may do what
//
// The user of a listener has to be allowed to subscribe to "asterisque.wire.<name>", the one of a
// dialling side to publish to it, and both to subscribe and to publish to inboxes: "_INBOX.>", or
// whatever prefix the options of package nats set. Where the server does
// not allow that, Dial and Listen say so, with an error that wraps nats.ErrPermissionViolation; but
// a listener that may not publish to inboxes cannot say so, and the dial fails for want of an
// answer.
//
// Each direction of a Wire has an inbox with 130 random bits in its name. Who knows it, as those
// who may subscribe to all inboxes or to the requests at a name, can end the Wire by publishing to
// it. Without TLS between the ends it can also read along, and make up what one end says to the
// other.
//
// # TLS between the ends
//
// Behind "nats+tls" the two ends do TLS with each other, through NATS, so that the server need not
// be trusted: it can hold messages up or end the Wire, and neither read nor change what crosses it.
// [wire.Options].TLS is as for "tls://", certificates of clients included, and wires are
// [wire.Secure]. Unless it names a server, the certificate of the listener has to be for the name
// behind the server, as orders above. TLS between a program and its NATS server is another thing:
// nats.Secure and nats.RootCAs of package nats.
//
// A Wire without TLS between its ends is not private ([wire.IsPrivate]), even with a NATS server on
// this machine. A node that lets its sessions be resumed says that it does not listen there, unless
// Access.PlainCredentials allows it.
//
// # What is lost, and what that means
//
// NATS delivers at most once: it drops what a slow consumer cannot take, and what is on its way
// when a connection is lost. So the messages of a Wire are numbered, and at a gap, a repetition or
// a number that is wrong the Wire fails, with a [*SequenceError]. When the connection to the server
// is lost, all wires over it fail at once with [ErrDisconnected], though package nats connects
// again by itself. A session that may be resumed goes on over the next Wire, with nothing lost.
//
// Each end says every 5 seconds that it lives, by a message that the server answers if nobody reads
// it: so a peer whose connection has ended is noticed after 5 seconds, and one that has vanished
// otherwise after 15 ([ErrPeerGone]). A session may notice sooner.
//
// # Time and memory
//
// A message has up to 32 KiB, or the max_payload of the server if that is less, which has to be 512
// bytes at least. Frames of any size are cut and put together again. What waits while another
// message is written shares the next one; nothing waits in the hope of more.
//
// A Wire holds 1 MiB of what its reader has not taken, where a message counts 273 bytes more than
// its content; Write of the peer waits meanwhile. What a hostile peer sends beyond that ends the
// Wire; package nats holds 2 MiB of it at most. An idle Wire holds no message. Beside that,
// a frame is bounded by what ReadFrame allows.
//
// A Wire that is dialled by URL has a connection to the server of its own. The wires of a listener
// share one, and so do those over a connection of yours. Each end of a Wire has one subscription,
// with a goroutine of package nats, and each dial and each listener a goroutine more.
//
// A listener holds 128 wires that nobody has accepted, and refuses more ([ErrRefused]); 1,024
// requests with 256 KiB can wait for its answer. A node that serves it lets a Wire in before
// anything is spent on that. All that come by one listener have one address, and so one share of
// what a node has for an address; only identities tell them apart. A request
// behind which nobody is costs a subscription for a moment: the server tells.
//
// Close waits up to 100 ms until package nats has taken that the Wire is closed. Where the socket
// to the server is stuck, a ReadFrame or a write returns when package nats gives it up: see
// nats.FlusherTimeout, a minute by default.
package natswire
