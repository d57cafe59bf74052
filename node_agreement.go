package asterisque

import (
	"slices"
	"strings"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
)

// The announcements of both sides in a handshake, and the agreement. No code here reads or writes.

// minFrame is the minimum, in bytes of a frame, that a peer must accept.
const minFrame = 1 << 10

// syncOf returns the announcement of this side, with the grants of a plan. resumes reports whether
// this side can resume the session.
func syncOf(cfg *config, p *limits.Plan, resumes bool) message.Sync {
	features := uint64(message.FeatureMetadata)
	if resumes {
		features |= message.FeatureResume
	}
	s := message.Sync{
		Features:    features,
		Ping:        cfg.pingInterval,
		Version:     message.Version,
		Node:        []byte(cfg.id),
		MaxMessage:  uint64(p.Largest + outbox.HeadSize),
		NestedCalls: uint64(p.NestedCalls),
	}
	if s.Ping > 0 {
		s.Timeout = cfg.pingTimeout // without Pings no timeout applies to the peer
	}
	if !cfg.windowless {
		s.Window, s.Opens, s.Overhead, s.NestedRoom = uint64(p.Window), uint64(p.Opens), uint64(p.Overhead), uint64(p.Nested)
	}
	return s
}

// answerTo makes the choices of the accepting side: it turns the peer's hello into the common
// agreement, with id as the id of the session.
func answerTo(hello *message.Sync, id []byte, values []*valueCodec, about Peer, resumes bool) (a agreement, err error) {
	chosen := choose(values, hello.Codecs)
	if chosen == nil {
		return a, codec.ErrHandshake.Withf("no common value codec: the peer offers %s, this side %s", strings.Join(hello.Codecs, ", "), strings.Join(codecNames(values), ", "))
	}
	hello.Version = min(hello.Version, message.Version) // the lower version is used
	hello.Codecs = []string{chosen.codec.Name()}
	hello.Session = id
	return agreeOn(hello, values, about, resumes)
}

// agreeOn returns the agreement in a Sync of the peer, in which the session id and one codec have
// been chosen.
func agreeOn(s *message.Sync, values []*valueCodec, about Peer, resumes bool) (a agreement, err error) {
	switch {
	case s.Version != message.Version:
		return a, codec.ErrHandshake.Withf("the peer speaks version %d of the protocol, this side %d", s.Version, message.Version)
	case len(s.Session) != message.SessionSize:
		return a, codec.ErrHandshake.Withf("the peer gave the session no id, as a side does that dials: one of the two sides has to accept (Serve, Accept), and both have dialled (Dial, Attach)")
	case len(s.Codecs) != 1 || choose(values, s.Codecs) == nil:
		return a, codec.ErrHandshake.Withf("the peer chose the value codec %q, which this side did not offer", s.Codecs)
	case s.MaxMessage < minFrame:
		return a, codec.ErrHandshake.Withf("the peer accepts frames of %d bytes only, and %d is the least", s.MaxMessage, minFrame)
	}
	a = agreement{
		about:        about,
		values:       choose(values, s.Codecs),
		syncSettings: syncSettingsOf(s),
		resume:       resumes && s.Features&message.FeatureResume != 0,
		received:     s.Received,
	}
	a.about.ID = string(s.Node)
	copy(a.session[:], s.Session)
	copy(a.secret[:], s.Secret)
	return a, nil
}

// choose returns the codec with the first matching name, or nil.
func choose(values []*valueCodec, names []string) *valueCodec {
	for _, name := range names {
		if i := slices.IndexFunc(values, func(v *valueCodec) bool { return v.codec.Name() == name }); i >= 0 {
			return values[i]
		}
	}
	return nil
}

func codecNames(values []*valueCodec) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.codec.Name()
	}
	return names
}

// previousSession is the proof of the connecting side for a session that it wants to resume.
type previousSession struct {
	session  SessionID
	secret   [message.SecretSize]byte
	received uint64 // counted frames that have arrived on the connecting side
}

// formerOf returns the proof in a hello.
func formerOf(hello *message.Sync) previousSession {
	was := previousSession{received: hello.Received}
	copy(was.session[:], hello.Session)
	copy(was.secret[:], hello.Secret)
	return was
}
