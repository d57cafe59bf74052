package natswire

import (
	"encoding/binary"
	"fmt"
)

// A Wire over NATS is two subjects, one for each direction. The messages of a direction begin with
// a header, and have the numbers 0, 1, 2 and so on.

// messageKind is the type of the body behind the header of a message.
type messageKind byte

const (
	// the greeting of a listener that opens a Wire; its first message
	kindWelcome messageKind = 1 + iota
	kindRefusal             // the reason of a refusal, as text
	kindData                // bytes of the Wire
	// no body: the header is the message
	kindState
	kindEnd // the reason of a failure, as text, or nothing; the last message
)

// messageHeader is the start of each message.
type messageHeader struct {
	kind   messageKind
	number uint64 // of this message
	taken  uint64 // total cost of data that its sender has taken
}

const headerSize = 1 + 8 + 8

// appendTo appends the header to dst.
func (h messageHeader) appendTo(dst []byte) []byte {
	dst = append(dst, byte(h.kind))
	dst = binary.BigEndian.AppendUint64(dst, h.number)
	return binary.BigEndian.AppendUint64(dst, h.taken)
}

// parseHeader returns the header of a message and the rest, which aliases b.
func parseHeader(b []byte) (h messageHeader, rest []byte, err error) {
	if len(b) < headerSize {
		return h, nil, fmt.Errorf("%w: %d bytes are no header", ErrForeign, len(b))
	}
	h = messageHeader{messageKind(b[0]), binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])}
	if h.kind < kindWelcome || h.kind > kindEnd {
		return h, nil, fmt.Errorf("%w: there is no message of kind %d", ErrForeign, h.kind)
	}
	return h, b[headerSize:], nil
}

// helloMessage is the first message of each end.
type helloMessage struct {
	tls    bool // the ends do TLS
	window uint32
}

// version begins a greeting: the protocol and its version.
const version = "asterisque/nats/1"

const greetingSize = len(version) + 1 + 4

// appendTo appends the greeting to dst.
func (g helloMessage) appendTo(dst []byte) []byte {
	dst = append(dst, version...)
	flags := byte(0)
	if g.tls {
		flags = 1
	}
	return binary.BigEndian.AppendUint32(append(dst, flags), g.window)
}

// parseGreeting reads a greeting.
func parseGreeting(b []byte) (g helloMessage, err error) {
	if len(b) < greetingSize || string(b[:len(version)]) != version {
		return g, fmt.Errorf("%w: there is no greeting of %s", ErrForeign, version)
	}
	b = b[len(version):]
	g = helloMessage{b[0]&1 != 0, binary.BigEndian.Uint32(b[1:])}
	if g.window < leastWindow {
		return g, fmt.Errorf("%w: a window of %d bytes is less than the %d that a Wire has at least", ErrForeign, g.window, leastWindow)
	}
	return g, nil
}

const maxReason = 200 // bytes of a text that a peer sends

// reason returns a text of a peer, quoted.
func reason(b []byte) string { return fmt.Sprintf("%q", b[:min(len(b), maxReason)]) }

// short returns the part of a text that is sent.
func short(text string) []byte { return []byte(text[:min(len(text), maxReason)]) }

const (
	// largest is the maximum number of bytes of a message, with its header.
	largest = 32 << 10
	// window is the maximum total cost of the data messages that a Wire holds for its reader, and
	// leastWindow the minimum that a peer has to allow.
	window      = 1 << 20
	leastWindow = 2 * (largest + overhead)
	// overhead is the cost of a message beside its bytes: about the memory that package nats holds
	// for it.
	overhead = 256
)

// cost returns the credit that a data message of n bytes takes.
func cost(n int) uint64 { return uint64(n + headerSize + overhead) }
