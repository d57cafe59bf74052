package carrier

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// violation returns the error of a peer that broke the protocol.
func violation(format string, args ...any) *codec.Abort {
	return &codec.Abort{Code: codec.Protocol, Message: fmt.Sprintf(format, args...)}
}

// wireFailed returns the error for a Wire that has failed with err.
func wireFailed(err error) *codec.Abort {
	return &codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: " + err.Error(), Cause: err}
}

// readError returns the Abort for a Wire that cannot be read any more.
func readError(err error) *codec.Abort {
	switch {
	case errors.Is(err, wire.ErrFrameTooLarge), errors.Is(err, codec.ErrProtocol):
		return violation("%v", err)
	case errors.Is(err, io.EOF):
		return &codec.Abort{Code: codec.SessionClosed, Message: "the peer closed the wire", Cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &codec.Abort{Code: codec.SessionClosed, Message: "the wire ended in the middle of a frame", Cause: err}
	default:
		return wireFailed(err)
	}
}

// slowPeer returns the error for a peer that has transferred only n bytes of a message in the time
// took.
func slowPeer(what string, n uint64, took, grace time.Duration) *codec.Abort {
	return codec.ErrUnavailable.Withf("the peer is lost: "+what+", and the least is %d bytes a second after the first %v",
		n, took.Round(time.Second), leastRate, grace)
}
