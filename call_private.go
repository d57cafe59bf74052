package asterisque

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/asterisque-go/asterisque/internal/guard"
)

// What an error of the application tells may be nobody else's business. Of such an error the peer
// gets an id, by which whoever has the log finds the text.

// errorID returns 8 random hexadecimal digits.
func errorID() string {
	var id [4]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// told returns what the peer is told of err, which is plain, and which a has been made of.
func (c *served) told(err error, a *Abort) *Abort {
	if !c.x.serving.private {
		return a
	}
	id := errorID()
	c.x.log.Warn("handler failed", "id", id, "session", c.x.session, "function", c.function(), "name", c.handler.name, "error", err)
	b := *a
	b.Message, b.Cause = "internal error, id "+id, nil
	return &b
}

// toldAborting returns what the peer is told if the handler has aborted the pipe with a.
func (c *served) toldAborting(a *Abort) *Abort {
	plain := true // unless it says something else: its methods are the application's
	guard.Run(c.x.log, "error of a handler", func() { plain = a.Cause.Error() == a.Message && isPlain(a.Cause) },
		"function", c.function(), "name", c.handler.name)
	if plain {
		return c.told(a.Cause, a)
	}
	return a
}

// isPlain reports whether err is no Abort, and says more than that a context has ended.
func isPlain(err error) bool {
	var a *Abort
	return !errors.As(err, &a) && err != context.Canceled && err != context.DeadlineExceeded
}
