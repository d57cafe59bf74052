package natswire_test

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// The messages of a Wire over NATS, as a peer of another implementation has them.

const (
	meeting      = "asterisque.wire."  // prefix of a name in the subject of requests
	version      = "asterisque/nats/1" // beginning of a greeting
	greetingSize = len(version) + 1 + 4
	headerSize   = 1 + 8 + 8
	secretSize   = 26       // of the random end of an inbox
	overhead     = 256      // what a message costs beside its bytes
	window       = 1 << 20  // bytes that a Wire holds for its reader
	largest      = 32 << 10 // bytes of a message, with its header
	maxName      = 200      // bytes
	maxReason    = 200      // bytes
	backlog      = 128      // wires that wait for Accept
	leastPayload = 512      // bytes that the server has to accept in a message
)

type messageKind byte

const (
	kindWelcome messageKind = 1 + iota
	kindRefusal
	kindData
	kindState
	kindEnd
)

// messageHeader is the start of each message of a direction.
type messageHeader struct {
	kind   messageKind
	number uint64 // 0, 1, 2 and so on
	taken  uint64 // total cost of the data that the sender has taken
}

// message returns a message with a body.
func (h messageHeader) message(body string) []byte {
	b := []byte{byte(h.kind)}
	b = binary.BigEndian.AppendUint64(b, h.number)
	b = binary.BigEndian.AppendUint64(b, h.taken)
	return append(b, body...)
}

// parseMessage is the inverse of message.
func parseMessage(b []byte) (h messageHeader, body string, err error) {
	if len(b) < headerSize {
		return h, "", errors.New("the message is too short")
	}
	h = messageHeader{messageKind(b[0]), binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])}
	return h, string(b[headerSize:]), nil
}

// hello returns the greeting of an end without TLS, with its window.
func hello(window uint32) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(version), 0), window)
}

// newInbox returns a subject for the messages to one end of a Wire.
func newInbox(nc *nats.Conn) string {
	prefix := nc.Opts.InboxPrefix
	if prefix == "" {
		prefix = strings.TrimSuffix(nats.InboxPrefix, ".")
	}
	return prefix + "." + rand.Text()
}
