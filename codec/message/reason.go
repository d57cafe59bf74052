package message

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// appendReason appends a code and a message, converted to valid UTF-8 of at most codec.MaxReason
// bytes.
func appendReason(dst []byte, code codec.Code, message string) []byte {
	message = truncate.Text(message, codec.MaxReason)
	if !utf8.ValidString(message) {
		message = strings.ToValidUTF8(message, "?") // one byte, so that it does not grow
	}
	dst = cborhead.AppendInt(dst, int64(code))
	return cborhead.AppendText(dst, message)
}

func readCode(r *cborhead.Reader) codec.Code {
	return codec.Code(r.Int("code", math.MaxInt32))
}

// readReason reads a text for users and truncates it to the size limit of the sender, because it is
// logged.
func readReason(r *cborhead.Reader) string {
	return string(truncate.Text(r.UTF8("message"), codec.MaxReason))
}
