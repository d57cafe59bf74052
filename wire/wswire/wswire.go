// Package wswire carries frames over WebSocket (RFC 6455): through HTTP proxies and load balancers,
// on one route of a web server, and from web pages. Each binary message is one frame, with nothing
// before it.
//
// An import of the package registers the schemes "ws" and "wss" with [wire.Register]:
//
//	import _ "github.com/asterisque-go/asterisque/wire/wswire"
//
//	sess, err := node.Dial(ctx, "wss://example.org/rpc")
//	err := node.ListenAndServe(ctx, "ws://127.0.0.1:8080/rpc") // an HTTP server with this one route
//
// A program that has an HTTP server adds a route to it, and gives the sessions to its node:
//
//	mux.Handle("/rpc", wswire.Handler(node))
//
// So does a program with a socket that was handed over by another process, or by systemd, so that a
// restart rejects no connection:
//
//	file, err := wire.InheritedFile("")
//	ln, err := net.FileListener(file)
//	err = httpServer.Serve(ln)
//
// [Dial] is for programs that need more than a URL, such as a header with a token.
//
// # Both sides
//
// The two sides agree on the subprotocol [Subprotocol]; a client that does not offer it is refused
// before the connection becomes a WebSocket. Messages are not compressed. A text message is refused
// with close code 1003, one that is too large with 1009, and the other side's error contains the
// code. A connection that ends without a Close frame returns io.ErrUnexpectedEOF, because it was
// cut. Pings are answered.
//
// With TLS, the application protocol (ALPN) is "http/1.1", as it has to be for WebSocket, and not
// the one of other wires.
//
// # Origins
//
// A page of any web site can open a WebSocket to any server, and the browser sends the cookies for
// that server with it. So a request with an Origin that is not the server's own host is refused
// with 403, unless [WithOrigins] allows it. Programs other than browsers usually send no Origin,
// and are accepted: the check protects users of browsers, and does not authenticate the peer.
//
// # WebAssembly
//
// A Go program in a web page or in Node.js (GOOS=js) dials with the WebSocket of JavaScript, and
// its sessions have all features: calls, calls back, streams. It cannot listen: Handler is not
// available, and Listen fails. The host does TLS, certificates and proxies, so [WithTLS] and
// [WithHeader] make Dial fail, and Dial does not see the reason of a server's refusal; a credential
// belongs into the handshake of the session. The host accepts all bytes that arrive. Unread
// messages, beside one message of any size, are limited to 64 MiB; a peer that sends more breaks
// the protocol, and is disconnected. A writer blocks while the host has more than 1 MiB to send.
// JavaScript may not use the close codes of the standard: it sends 4003 for 1003, and 4009 for
// 1009.
//
// # Web pages
//
// A page opens the connection with the subprotocol and asks for bytes; each message that it sends
// has to be binary, and one frame of the protocol:
//
//	const ws = new WebSocket("wss://example.org/rpc", "asterisque.1")
//	ws.binaryType = "arraybuffer"
//	ws.onmessage = (e) => receive(new Uint8Array(e.data)) // one frame
//	ws.send(frame)                                        // a Uint8Array; a string would end the connection
//
// A page receives no backpressure: the browser accepts every message of send. It should watch
// ws.bufferedAmount, and keep to the windows of the protocol.
//
// # Limits
//
// While nothing arrives a Wire holds two buffers of 4 KiB, whatever the size of earlier frames,
// beside those of net/http while it accepts. For a message that is arriving it holds 32 KiB, and
// then up to twice the received bytes, regardless of the announced length; Receiving returns the
// amount. A message above the limit of ReadFrame ends the Wire. A peer that does not read blocks
// the writer.
//
// A listener answers one request on each connection, and takes ten seconds for it at most. A node
// that serves a listener admits each connection before TLS and HTTP, and closes it when it has
// carried no session for the time limit of a handshake. See [Handler] for the settings of a custom
// server.
package wswire

// Subprotocol is the WebSocket subprotocol that both sides agree on. It prevents accidental
// connections to other protocols.
const Subprotocol = "asterisque.1"
