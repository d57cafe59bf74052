package classicwire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
)

// The timings that the original's client requests, in seconds, and the range that its server
// grants.
const (
	askPing, minPing, maxPing          = 3, 1, 60
	askTimeout, minTimeout, maxTimeout = 1800, 60, 3600
)

// first appends the Sync for the session, converted from the peer's first message.
func (t *translator) first(dst []byte, m classic.Message) ([]byte, error) {
	c, ok := m.(*classic.Control)
	t.part(goodbye(t.codec.of()))
	if ok && c.Code == classic.CloseCode {
		return message.SessionClose{Code: codec.Handshake, Message: "the peer refuses the session; a classic peer does not say why"}.AppendTo(dst), nil
	}
	if !ok || c.Code != classic.SyncCode {
		return dst, codec.ErrHandshake.Withf("the peer's first message is not a SyncConfig of the classic protocol")
	}
	s, err := classic.ParseSync(c.Data)
	if err != nil {
		return dst, err
	}
	hello := message.Sync{
		Version: message.Version, Node: []byte(s.Node.String()), MaxMessage: maxFrame(t.codec.of()), Codecs: []string{t.codec.of().Name()},
	}
	zero := s.Session == classic.UUID{}
	switch {
	case t.server && !zero:
		return dst, codec.ErrHandshake.Withf("the peer wants to resume session %v, which the classic protocol cannot do", s.Session)
	case !t.server && zero:
		return dst, codec.ErrHandshake.Withf("the peer gave the session no id, as a side does that dials: one of the two sides has to accept (Serve, Server), and both have dialled (Dial, Client)")
	case !t.server:
		hello.Session = s.Session[:]
	}
	t.asked, t.synced = s, true
	return hello.AppendTo(dst), nil
}

// stranger returns the error for first bytes that are not of the classic protocol. begins reports
// whether those bytes begin with a text.
func (t *translator) stranger(err error, begins func(string) bool) error {
	t.part(goodbye(t.codec.of()))
	var abort *codec.Abort
	switch {
	case errors.As(err, &abort):
		return err
	case begins("\x00"):
		// the length of a frame of protocol 1, which is no tag of the classic one
		t.part(farewell1)
		return codec.ErrHandshake.Withf("the peer does not speak the classic protocol; it seems to speak protocol 1: use tcp://, and no classic://")
	}
	// no ErrHandshake, which would be final: it may be a balancer, for a moment
	return fmt.Errorf("the peer does not speak the classic protocol: %w", err)
}

// otherCodec returns the error for first bytes in codec c, while this side uses the other codec.
func (t *translator) otherCodec(c classic.Codec) error {
	t.part(goodbye(c)) // which it understands
	return codec.ErrHandshake.Withf("the peer has the %v of the classic protocol, and this side the %v: give both the same, here by the order of WithCodecs", c, t.codec.of())
}

// farewell1 is the final frame for a peer of protocol 1, if it is one.
var farewell1 = prefixed(message.SessionClose{Code: codec.Handshake, Message: "this side speaks the classic protocol 0.1 and not protocol 1: use classic://"}.AppendTo(nil))

// prefixed returns frame behind its length.
func prefixed(frame []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// greet appends the SyncConfig for the peer, converted from this side's Sync.
func (t *translator) greet(dst []byte, s message.Sync) ([]byte, error) {
	if err := t.fits(s); err != nil {
		return dst, err
	}
	out := classic.Sync{Version: 1, Node: nodeID(string(s.Node)), Time: time.Now(), Ping: askPing, Timeout: askTimeout}
	if t.server {
		out.Session = classic.UUID(s.Session)
		out.Ping = min(max(t.asked.Ping, minPing), maxPing)
		out.Timeout = min(max(t.asked.Timeout, minTimeout), maxTimeout)
	}
	t.part(goodbye(t.codec.of()))
	return out.AppendTo(dst, t.codec.of()), nil
}

// fits returns an error unless a classic session can have the parameters of s.
func (t *translator) fits(s message.Sync) error {
	switch {
	case !t.codec.among(s.Codecs):
		return codec.ErrHandshake.Withf("a classic session carries classic values only: use WithCodecs(classic.MessagePack) or WithCodecs(classic.Simple), and not the codecs %q", s.Codecs)
	case s.Window != 0 || s.Opens != 0:
		return codec.ErrHandshake.Withf("a classic peer knows no windows, and the session wants some: it has to heed wire.Foreign")
	case t.server && len(s.Session) != message.SessionSize:
		return codec.ErrHandshake.Withf("the session has no id")
	}
	return nil
}

// maxFrame returns the limit of frames for the session, from the largest classic message: the
// session allows for 80 bytes beside the payload, and a classic Close has at least 4, or 3. A
// message with a longer head is refused when it is translated.
func maxFrame(c classic.Codec) uint64 {
	const headSize, simpleHead, packedHead = 80, 4, 3
	if c == classic.Simple {
		return classic.MaxMessage - simpleHead + headSize
	}
	return classic.MaxMessage - packedHead + headSize
}

// nodeID returns the uuid for a node's id.
func nodeID(id string) (u classic.UUID) {
	if u, err := classic.ParseUUID(id); err == nil {
		return u
	}
	if id == "" {
		rand.Read(u[:]) // never fails
		u[6] = u[6]&0x0f | 0x40
	} else {
		hash := sha256.Sum256([]byte(id))
		copy(u[:], hash[:])
		u[6] = u[6]&0x0f | 0x80 // version 8: custom
	}
	u[8] = u[8]&0x3f | 0x80
	return u
}
