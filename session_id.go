package asterisque

import (
	"encoding/hex"

	"github.com/asterisque-go/asterisque/codec/message"
)

// SessionID identifies a session on both sides. It is random, and proves nothing.
type SessionID [message.SessionSize]byte

// String returns the id in 32 hexadecimal digits; logs have the first 8.
func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// short returns the digits for logs.
func (id SessionID) short() string { return hex.EncodeToString(id[:4]) }
