package asterisque

import (
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// sessionConfig is what the options of a node say of each session. It does not change.
type sessionConfig struct {
	log        *slog.Logger
	share      float64        // of lower priorities
	window     int            // bytes of the largest window
	windowless bool           // there are none
	windows    map[uint16]int // of functions: calls that are not answered
	private    bool           // errors of handlers stay on this side
	resumeFor  time.Duration
	drain      time.Duration // for running calls, when the session is shut down; 0: any time

	outliveCertificates bool

	hooks hooks
}

// sessionStart is what a session begins with.
type sessionStart struct {
	cfg     *sessionConfig
	wire    wire.Wire
	place   transport.Place // of the Wire; nil without
	agreed  agreement
	grant   Grant
	dialled bool // by this side
}
