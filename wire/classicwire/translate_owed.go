package classicwire

import (
	"fmt"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
)

// owe queues an answer, and appends a Ping for the session, if needed.
func (t *translator) owe(dst []byte, answer uint32) []byte {
	if t.replies.put(answer) {
		return message.Ping{}.AppendTo(dst)
	}
	return dst
}

// outboundOwed appends the queued answers.
func (t *translator) outboundOwed(dst []byte) (_ []byte, err error) {
	for _, a := range t.replies.take() {
		if dst, err = answer(a).AppendTo(dst, t.codec.of()); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// answer returns the answer of the original to an unexpected message.
func answer(a uint32) *classic.Close {
	id, text := uint16(a), "unknown"
	if a&duplicate != 0 {
		text = "duplicate"
	}
	return &classic.Close{Pipe: id, Abort: &classic.Abort{Code: classic.Unexpected, Message: fmt.Sprintf("%s pipe-id specified: %d", text, int16(id))}}
}
