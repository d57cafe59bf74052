package wswire

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/coder/websocket"
)

var (
	errReadClosed  = fmt.Errorf("wire: read: %w", net.ErrClosed)
	errWriteClosed = fmt.Errorf("wire: write: %w", net.ErrClosed)
	errText        = errors.New("wire: read: the peer sent a text message, and frames are binary ones; a page has to send bytes, such as a Uint8Array, not a string")
)

// readError converts an error of the WebSocket library.
func readError(err error) error {
	var said websocket.CloseError
	switch {
	case errors.As(err, &said):
		switch said.Code {
		case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
			return io.EOF
		}
		return fmt.Errorf("wire: read: the peer closed the WebSocket with code %d (%v): %w", int(said.Code), said.Code, errors.New(said.Reason))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("wire: read: the connection ended without a Close frame: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("wire: read: %w", err)
}
