// Package wswire carries frames over WebSocket (RFC 6455): through proxies and load balancers that
// speak HTTP, on a route beside the others of a web server, and from web pages. Each binary message
// is one frame, with nothing before it.
//
// Importing the package registers the schemes "ws" and "wss" with [wire.Register]:
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
// So does one whose socket was handed over by another process, or by systemd, so that a restart
// turns nobody away:
//
//	file, err := wire.InheritedFile("")
//	ln, err := net.FileListener(file)
//	err = httpServer.Serve(ln)
//
// [Dial] is for those who need more than a URL, such as a header with a token.
//
// # Both sides
//
// The two sides agree on the subprotocol [Subprotocol]; a client that does not offer it is refused
// before the connection becomes a WebSocket. Messages are not compressed. A text message is refused
// with close code 1003, one that is too large with 1009, and the other side's error says so. A
// connection that ends without a Close frame is io.ErrUnexpectedEOF, for it was cut. Pings are
// answered.
//
// With TLS, the application protocol (ALPN) is "http/1.1", as it has to be for WebSocket, and not
// the one of other wires.
//
// # Origins
//
// A page of any web site can open a WebSocket to any server, and the browser sends the cookies for
// that server with it. So a request with an Origin that is not the server's own host is refused
// with 403, unless [WithOrigins] allows it. Programs other than browsers usually send no Origin,
// and pass: the check protects users of browsers, and says nothing about who the peer is.
//
// # WebAssembly
//
// A Go program in a web page or in Node.js (GOOS=js) dials, by the WebSocket that JavaScript has
// there, and has sessions like any other: calls, calls back, streams. It cannot listen: Handler is
// not there, and Listen fails. TLS, its certificates and proxies are the host's, so [WithTLS] and
// [WithHeader] make Dial fail, and Dial does not learn why a server refused; a credential goes into
// the handshake of the session. The host takes all that arrives. What waits to be read, beside one
// message of any size, is limited to 64 MiB; a peer that sends more breaks the promises of the
// protocol, and is cut off. A writer waits while the host has more than 1 MiB to send. JavaScript
// may not use the close codes of the standard: it says 4003 for 1003, and 4009 for 1009.
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
// A page cannot be held up: the browser takes whatever send is given. It should watch
// ws.bufferedAmount, and keep to the windows of the protocol.
//
// # Limits
//
// While nothing arrives a Wire holds two buffers of 4 KiB, whatever came before, beside those of
// net/http while it accepts. For a message that is arriving it holds 32 KiB, and more only as more
// has arrived, up to twice that, whatever is announced: Receiving tells. What exceeds the limit of
// ReadFrame ends that. A peer that does not read stops the writer.
//
// A listener answers one request on each connection, and takes ten seconds for it at most. A node
// that serves one lets each connection in before TLS and HTTP, and closes it when it is no session
// in the time that a handshake may take. See [Handler] for what a server of your own needs.
package wswire

// Subprotocol is the WebSocket subprotocol that both sides agree on, so that nobody talks to
// something else by mistake.
const Subprotocol = "asterisque.1"
