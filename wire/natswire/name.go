package natswire

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// meeting is the prefix of a name in the subject of requests to its listeners.
const meeting = "asterisque.wire."

// group is the queue group of the listeners at one name: each request reaches one of them.
const group = "asterisque"

const maxName = 200 // bytes

// subjectOf returns the subject of requests to the listeners at a name. The error wraps
// wire.ErrURL.
func subjectOf(name string) (string, error) {
	if why := unfit(name); why != "" {
		return "", transport.BadURL(fmt.Errorf("the name %q cannot be part of a NATS subject: %s; a name is, for example, orders or orders.eu", name, why))
	}
	return meeting + name, nil
}

// unfit returns why a name cannot be used, or "".
func unfit(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxName:
		return fmt.Sprintf("it has %d bytes, and %d are allowed", len(name), maxName)
	case strings.ContainsAny(name, "*>"):
		return "'*' and '>' are wildcards"
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."):
		return "a dot has to have something before and behind it"
	}
	for _, r := range name {
		if unicode.IsSpace(r) || !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			return "it has a space, or what cannot be seen"
		}
	}
	return ""
}

// secretSize is the length of the secret at the end of an inbox: 130 bits in base 32.
const secretSize = 26

// newInbox returns an unguessable subject below the prefix for inboxes of nc. An inbox of package
// nats would differ from the next one of the same program by only a few steps of a generator.
func newInbox(nc *nats.Conn) string {
	prefix := nc.Opts.InboxPrefix
	if prefix == "" {
		prefix = strings.TrimSuffix(nats.InboxPrefix, ".")
	}
	return prefix + "." + rand.Text()
}

// checkInbox returns an error for a peer's subject that is no inbox of this package: a peer must
// not direct messages to subjects of other programs.
func checkInbox(subject string) error {
	at := strings.LastIndexByte(subject, '.')
	if at <= 0 || len(subject) > maxName || strings.ContainsAny(subject, "*> \t\r\n") || subject[0] == '$' {
		return errNoInbox
	}
	secret := subject[at+1:]
	if len(secret) != secretSize || strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return errNoInbox
	}
	return nil
}

var errNoInbox = errors.New("the peer names no inbox of a Wire to answer to")
