package asterisque

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// agreement is what two sides found in a handshake, as far as it is not this side's own
// configuration.
type agreement struct {
	session [message.SessionSize]byte
	about   Peer
	values  *valueCodec
	promises

	resume   bool                     // both sides can resume the session
	secret   [message.SecretSize]byte // that entitles to it
	received uint64                   // in answer to a resume: how many counted frames the peer has
}

// promises is what a side has said in its Sync that holds for the whole session.
type promises struct {
	maxFrame int    // bytes of the largest frame that the peer accepts
	window   uint64 // what the Blocks of a stream that this side opens may cost at first
	early    uint64 // the same, as it is paid with its Open: 0 without windows
	overhead uint64 // what a message to the peer costs besides its content
	opens    uint64 // what calls may cost that are sent at first; 0: any number

	// how many calls within calls the peer runs, and what they may cost; 0: any number
	nestedCalls, nestedRoom int

	ping    time.Duration // the peer's ping interval; 0: it sends none
	timeout time.Duration // after which silence the peer gives this side up; 0: never
}

// hello returns what this side says of itself, and promises.
func (h *handshake) hello(p *limits.Plan) message.Sync {
	var features uint64
	if h.resumes() {
		features = message.FeatureResume
	}
	s := message.Sync{
		Features:    features,
		Ping:        h.cfg.pingInterval,
		Version:     message.Version,
		Node:        []byte(h.cfg.id),
		MaxMessage:  uint64(p.Largest + outbox.HeadSize),
		NestedCalls: uint64(p.NestedCalls),
	}
	if s.Ping > 0 {
		s.Timeout = h.cfg.pingTimeout // without Pings no peer is given up for its silence
	}
	if !h.cfg.windowless {
		s.Window, s.Opens, s.Overhead, s.NestedRoom = uint64(p.Window), uint64(p.Opens), uint64(p.Overhead), uint64(p.Nested)
	}
	return s
}

// resumes reports whether this side can resume the session. Peers of another protocol never can.
func (h *handshake) resumes() bool {
	_, foreign := h.w.(wire.Windowless)
	return h.cfg.resumeFor > 0 && !h.once && !foreign
}

// agree takes what matters of the peer's Sync, in which the session id and one codec have been
// chosen.
func (h *handshake) agree(s message.Sync) (a agreement, err error) {
	switch {
	case s.Version != message.Version:
		return a, codec.ErrHandshake.Withf("the peer speaks version %d of the protocol, this side %d", s.Version, message.Version)
	case len(s.Session) != message.SessionSize:
		return a, codec.ErrHandshake.Withf("the peer gave the session no id")
	case len(s.Codecs) != 1 || h.choose(s.Codecs) == nil:
		return a, codec.ErrHandshake.Withf("the peer chose the value codec %q, which this side did not offer", s.Codecs)
	case s.MaxMessage < minFrame:
		return a, codec.ErrHandshake.Withf("the peer accepts frames of %d bytes only, and %d is the least", s.MaxMessage, minFrame)
	}
	a = agreement{
		about:    h.peer(),
		values:   h.choose(s.Codecs),
		promises: promisesOf(&s),
		resume:   h.resumes() && s.Features&message.FeatureResume != 0,
		received: s.Received,
	}
	a.about.ID = string(s.Node)
	copy(a.session[:], s.Session)
	copy(a.secret[:], s.Secret)
	return a, nil
}

// promisesOf returns what the peer has said in its Sync for the whole session.
func promisesOf(s *message.Sync) promises {
	p := promises{
		maxFrame: int(min(s.MaxMessage, 1<<31-1)),
		window:   piping.Unlimited,
		early:    s.Window,
		overhead: max(s.Overhead, message.MinOverhead),
		opens:    s.Opens,

		nestedCalls: int(min(s.NestedCalls, math.MaxInt32)),
		nestedRoom:  int(min(s.NestedRoom, math.MaxInt32)),

		ping:    s.Ping,
		timeout: s.Timeout,
	}
	if s.Window > 0 {
		p.window = s.Window
	}
	return p
}

// peer returns what the Wire tells of the other side.
func (h *handshake) peer() Peer {
	p := Peer{LocalAddr: h.w.LocalAddr(), RemoteAddr: h.w.RemoteAddr()}
	if secure, ok := h.w.(wire.Secure); ok {
		state := secure.ConnectionState()
		p.TLS = &state
	}
	return p
}

// choose returns the first of names that this side has, or nil.
func (h *handshake) choose(names []string) *valueCodec {
	for _, name := range names {
		if i := slices.IndexFunc(h.cfg.values, func(v *valueCodec) bool { return v.codec.Name() == name }); i >= 0 {
			return h.cfg.values[i]
		}
	}
	return nil
}

func codecNames(codecs []codec.Values) string {
	var names []string
	for _, v := range codecs {
		names = append(names, v.Name())
	}
	return strings.Join(names, ", ")
}
