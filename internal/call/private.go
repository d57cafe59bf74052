package call

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// The text of an application's error may be confidential. For such an error the peer receives an
// id, with which a reader of the log finds the text.

// NewErrorID returns 8 random hexadecimal digits.
func NewErrorID() string {
	var id [4]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// told returns the error for the peer in place of err, which is plain, and the cause of a.
func (c *Inbound) told(err error, a *codec.Abort) *codec.Abort {
	if !c.x.serving.private {
		return a
	}
	id := NewErrorID()
	c.x.Log.Warn("handler failed", "id", id, "session", c.x.Session, "function", c.Function(), "name", c.Handler.Name, "error", err)
	b := *a
	b.Message, b.Cause = "internal error, id "+id, nil
	return &b
}

// toldAborting returns the error for the peer if the handler has aborted the pipe with a.
func (c *Inbound) toldAborting(a *codec.Abort) *codec.Abort {
	plain := true // default if a method of the application's error fails
	guard.Run(c.x.Log, "error of a handler", func() { plain = a.Cause.Error() == a.Message && isPlain(a.Cause) },
		"function", c.Function(), "name", c.Handler.Name)
	if plain {
		return c.told(a.Cause, a)
	}
	return a
}

// isPlain reports whether err is neither an Abort nor just the error of a context.
func isPlain(err error) bool {
	var a *codec.Abort
	return !errors.As(err, &a) && err != context.Canceled && err != context.DeadlineExceeded
}
