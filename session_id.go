package asterisque

import (
	"encoding/hex"

	"github.com/asterisque-go/asterisque/codec/message"
)

// SessionID names a session on both sides. It is drawn by chance, and proves nothing.
type SessionID [message.SessionSize]byte

// String returns the id in 32 hexadecimal digits, of which a Session is logged by the first 8.
func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// short returns the digits that logs have.
func (id SessionID) short() string { return hex.EncodeToString(id[:4]) }
