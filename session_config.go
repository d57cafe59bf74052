package asterisque

import (
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// sessionConfig is the part of a node's options for each session. It does not change.
type sessionConfig struct {
	log        *slog.Logger
	share      float64        // of lower priorities
	window     int            // bytes of the largest window
	windowless bool           // no windows
	windows    map[uint16]int // by function: outstanding calls
	private    bool           // keeps errors of handlers on this side
	resumeFor  time.Duration
	drain      time.Duration // for running calls, at shutdown; 0: no limit

	outliveCertificates bool

	hooks hooks
}

// sessionStart holds the parameters of a new session.
type sessionStart struct {
	cfg     *sessionConfig
	wire    wire.Wire
	place   transport.Place // of the Wire; nil without one
	agreed  handshake.Agreement
	about   Peer
	values  *values.Codec // agreed
	grant   Grant
	dialled bool // by this side
}
