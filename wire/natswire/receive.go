package natswire

import (
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
)

// receive is called by package nats with each message to the inbox, one after the other.
func (c *conn) receive(m *nats.Msg) {
	if err := c.take(m); err != nil {
		c.fail(err)
	}
}

// take processes a message. The error is the reason why the Wire fails.
func (c *conn) take(m *nats.Msg) error {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return c.nobody()
	}
	h, body, err := parseHeader(m.Data)
	if err != nil {
		return err
	}
	if h.number != c.next {
		return &SequenceError{Want: c.next, Got: h.number}
	}
	c.next++
	c.hears.Add(1)
	if !c.isOpen() {
		return c.answered(h.kind, m.Reply, body)
	}
	if err := c.credit.returned(h.taken); err != nil {
		return err
	}
	return c.arrived(h.kind, body)
}

// nobody returns the error for a message without a receiver.
func (c *conn) nobody() error {
	if c.isOpen() {
		return fmt.Errorf("%w: the NATS server has no subscriber there", ErrPeerGone)
	}
	return ErrNobody
}

// isOpen reports whether a listener has opened the Wire.
func (c *conn) isOpen() bool {
	select {
	case <-c.opened:
		return true
	default:
		return false
	}
}

// answered handles the answer of a listener.
func (c *conn) answered(k messageKind, inbox string, body []byte) error {
	switch k {
	case kindWelcome:
	case kindRefusal:
		return fmt.Errorf("%w: it says %s", ErrRefused, reason(body))
	default:
		return fmt.Errorf("%w: kind %d is no answer of a listener", ErrForeign, k)
	}
	g, err := parseGreeting(body)
	if err != nil {
		return err
	}
	if err := checkInbox(inbox); err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	c.open(inbox, g)
	close(c.opened)
	return nil
}

// arrived handles a message of an open Wire.
func (c *conn) arrived(k messageKind, body []byte) error {
	switch k {
	case kindData:
		return c.in.put(body)
	case kindState:
		return nil
	case kindEnd:
		if len(body) > 0 {
			err := fmt.Errorf("%w: it says %s", ErrPeerFailed, reason(body))
			c.finish(err, err, func() {})
			return nil
		}
		c.finish(io.EOF, errPeerClosed, func() {})
		return nil
	}
	return fmt.Errorf("%w: kind %d, in the middle of the Wire", ErrForeign, k)
}
