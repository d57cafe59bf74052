package handshake

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// The announcements of both sides in a handshake, and the agreement. No code here reads or writes.

// minFrame is the minimum, in bytes of a frame, that a peer must accept.
const minFrame = 1 << 10

// Config is the configuration of a side for its handshakes.
type Config struct {
	ID           string     // name of the node
	Codecs       []string   // names of the value codecs, the preferred one first
	Plan         *flow.Plan // granted to a peer that this side has dialled
	PingInterval time.Duration
	PingTimeout  time.Duration // of this side for the peer
	Windowless   bool          // no windows are granted
	Time         time.Duration // for a handshake

	// sessions can be resumed; the handshake then has secrets, and the Wire has to be private
	Resumes          bool
	PlainCredentials bool // any Wire will do
}

// sync returns the announcement of this side, with the grants of a plan. resumes reports whether
// this side can resume the session.
func (c *Config) sync(p *flow.Plan, resumes bool) message.Sync {
	features := uint64(message.FeatureMetadata)
	if resumes {
		features |= message.FeatureResume
	}
	s := message.Sync{
		Features:    features,
		Ping:        c.PingInterval,
		Version:     message.Version,
		Node:        []byte(c.ID),
		MaxMessage:  uint64(p.Largest + outbox.HeadSize),
		NestedCalls: uint64(p.NestedCalls),
	}
	if s.Ping > 0 {
		s.Timeout = c.PingTimeout // without Pings no timeout applies to the peer
	}
	if !c.Windowless {
		s.Window, s.Opens, s.Overhead, s.NestedRoom, s.Extra = uint64(p.Window), uint64(p.Opens), uint64(p.Overhead), uint64(p.Nested), uint64(p.Extra)
	}
	return s
}

// answerTo makes the choices of the accepting side: it turns the peer's hello into the common
// agreement, with id as the id of the session.
func answerTo(hello *message.Sync, id []byte, codecs []string, resumes bool) (a Agreement, err error) {
	chosen := slices.IndexFunc(hello.Codecs, func(name string) bool { return slices.Contains(codecs, name) })
	if chosen < 0 {
		return a, codec.ErrHandshake.Withf("no common value codec: the peer offers %s, this side %s", strings.Join(hello.Codecs, ", "), strings.Join(codecs, ", "))
	}
	hello.Version = min(hello.Version, message.Version) // the lower version is used
	hello.Codecs = hello.Codecs[chosen : chosen+1]
	hello.Session = id
	return agreeOn(hello, codecs, resumes)
}

// agreeOn returns the agreement in a Sync of the peer, in which the session id and one codec have
// been chosen.
func agreeOn(s *message.Sync, codecs []string, resumes bool) (a Agreement, err error) {
	switch {
	case s.Version != message.Version:
		return a, codec.ErrHandshake.Withf("the peer speaks version %d of the protocol, this side %d", s.Version, message.Version)
	case len(s.Session) != message.SessionSize:
		return a, codec.ErrHandshake.Withf("the peer gave the session no id, as a side does that dials: one of the two sides has to accept (Serve, Accept), and both have dialled (Dial, Attach)")
	case len(s.Codecs) != 1 || !slices.Contains(codecs, s.Codecs[0]):
		return a, codec.ErrHandshake.Withf("the peer chose the value codec %q, which this side did not offer", s.Codecs)
	case s.MaxMessage < minFrame:
		return a, codec.ErrHandshake.Withf("the peer accepts frames of %d bytes only, and %d is the least", s.MaxMessage, minFrame)
	}
	a = Agreement{
		Node:     string(s.Node),
		Codec:    s.Codecs[0],
		Settings: SettingsOf(s),
		Resume:   resumes && s.Features&message.FeatureResume != 0,
		Received: s.Received,
	}
	copy(a.Session[:], s.Session)
	copy(a.Secret[:], s.Secret)
	return a, nil
}

// Agreement is the result of a handshake, without this side's own configuration.
type Agreement struct {
	Session [message.SessionSize]byte
	Node    string // name that the peer gives itself: proves nothing
	Codec   string // name of the value codec
	Settings

	Resume   bool                     // both sides can resume the session
	Secret   [message.SecretSize]byte // entitles to resume
	Received uint64                   // counted frames of the peer, in answer to a resume
}

// Settings is the part of a side's Sync that holds for the whole session. A resume requires
// that all of it is unchanged.
type Settings struct {
	MaxFrame int // bytes of the largest frame that the peer accepts
	// initial cost limit for the Blocks of a stream that this side Opens, paid with its Open; 0:
	// the peer has no windows
	Early    uint64
	Extra    uint64 // initial extra credit for the first Blocks of these streams
	Overhead uint64 // cost of a message to the peer besides its content
	Opens    uint64 // initial cost limit for calls; 0: no limit

	Metadata bool // the peer supports Metadata of calls

	// number of nested calls that the peer runs, and their cost limit; 0: no limit
	NestedCalls, NestedRoom int

	Ping    time.Duration // the peer's Ping interval; 0: it sends no Pings
	Timeout time.Duration // silence after which the peer considers this side lost; 0: never
}

// SettingsOf returns the settings in a Sync of the peer.
func SettingsOf(s *message.Sync) Settings {
	return Settings{
		MaxFrame: int(min(s.MaxMessage, 1<<31-1)),
		Early:    s.Window,
		Extra:    s.Extra,
		Overhead: max(s.Overhead, message.MinOverhead),
		Opens:    s.Opens,
		Metadata: s.Features&message.FeatureMetadata != 0,

		NestedCalls: int(min(s.NestedCalls, math.MaxInt32)),
		NestedRoom:  int(min(s.NestedRoom, math.MaxInt32)),

		Ping:    s.Ping,
		Timeout: s.Timeout,
	}
}

// Proof is the proof of the connecting side for a session that it wants to resume. The zero Proof
// names no session.
type Proof struct {
	Session  [message.SessionSize]byte
	Secret   [message.SecretSize]byte
	Received uint64 // counted frames that have arrived on the connecting side
}

// proofOf returns the proof in a hello.
func proofOf(hello *message.Sync) Proof {
	was := Proof{Received: hello.Received}
	copy(was.Session[:], hello.Session)
	copy(was.Secret[:], hello.Secret)
	return was
}
