package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// The protocol between two nodes of a name before one relays a peer to the other: the first frame
// contains the session and the information about the peer, and the second one reports whether the
// session is there.

// relayHeader is the first frame, as JSON.
type relayHeader struct {
	Session asterisque.SessionID `json:"session"`
	Network string               `json:"network"` // of Addr, the address of the peer
	Addr    string               `json:"addr"`

	// Secure reports that the peer's Wire has TLS. Chain is the verified certificate by which the
	// peer has proved its identity, with the chain behind it. It is empty without such a proof.
	Secure bool     `json:"secure,omitempty"`
	Chain  [][]byte `json:"chain,omitempty"`
}

const (
	mostRelayed = 64 << 10 // maximum bytes of the first frame
	relayTime   = 10 * time.Second

	isHere    = "here"
	isNot     = "not here"
	mostReply = 64
)

// ask asks a node over w for the session of r, for p. It returns w if the node has the session.
func (rl *Relay) ask(ctx context.Context, w wire.Wire, r asterisque.SessionRecord, p asterisque.Peer) (wire.Wire, error) {
	stop := context.AfterFunc(ctx, func() { w.Close() })
	answer, err := rl.exchange(w, r, p)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && answer == isHere {
		return w, nil
	}
	w.Close()
	if err == nil && answer != isNot {
		err = fmt.Errorf("cluster: the node %q answers %q", r.Node, answer)
	}
	return nil, err
}

func (rl *Relay) exchange(w wire.Wire, r asterisque.SessionRecord, p asterisque.Peer) (answer string, err error) {
	says := relayHeader{Session: r.Session, Network: p.RemoteAddr.Network(), Addr: p.RemoteAddr.String(), Secure: p.TLS != nil}
	if p.TLS != nil && len(p.TLS.VerifiedChains) > 0 {
		for _, cert := range p.TLS.VerifiedChains[0] {
			says.Chain = append(says.Chain, cert.Raw)
		}
	}
	frame, err := json.Marshal(says)
	if err != nil {
		return "", err
	}
	if err := w.WriteFrames([][]byte{frame}); err != nil {
		return "", err
	}
	reply, err := w.ReadFrame(mostReply)
	return string(reply), err
}

// listen accepts peers that other nodes relay, until life ends.
func (rl *Relay) listen(start, life context.Context) error {
	ln, err := natswire.Listen(start, rl.links.NATS, rl.cfg.Subject(rl.cfg.ID), rl.listenTLS())
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if g, ok := ln.(transport.Guarded); ok {
		g.Guard(rl.links.Node)
	}
	context.AfterFunc(life, func() { ln.Close() })
	rl.running.Go(func() { // ends with ln
		for {
			w, err := ln.Accept()
			if err != nil {
				return
			}
			rl.running.Go(func() { rl.take(life, w) }) // ends after relayTime, and the handshake
		}
	})
	return nil
}

// take resumes the session that another node relays over w.
func (rl *Relay) take(life context.Context, w wire.Wire) {
	node := rl.links.Node
	ctx, cancel := context.WithTimeout(life, relayTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { w.Close() })
	peer, err := rl.read(w)
	if err == nil {
		err = w.WriteFrames([][]byte{[]byte(isHere)})
	}
	if !stop() || err != nil {
		w.Close()
		return
	}
	if _, err := node.AcceptRelayed(ctx, peer); err != nil {
		node.Logger().Info("cluster: a session that another node relays cannot be resumed", "addr", peer.RemoteAddr(), "error", err)
	}
}

// read returns the Wire of the peer that another node relays over w. If this node does not have its
// session, read reports that to the other node and returns an error.
func (rl *Relay) read(w wire.Wire) (wire.Wire, error) {
	frame, err := w.ReadFrame(mostRelayed)
	if err != nil {
		return nil, err
	}
	var says relayHeader
	if err := json.Unmarshal(frame, &says); err != nil {
		return nil, err
	}
	peer, err := rl.peer(w, says)
	if err != nil {
		w.WriteFrames([][]byte{[]byte(isNot)})
		rl.links.Node.Logger().Info("cluster: a session is not resumed that another node relays", "session", says.Session, "addr", says.Addr, "error", err)
	}
	return peer, err
}

// peer returns the Wire of the peer in says. If the peer has TLS with the other node, the two nodes
// need TLS as well: only then has the other node proved that it belongs to the name, and can be
// trusted for the identity of the peer.
func (rl *Relay) peer(w wire.Wire, says relayHeader) (wire.Wire, error) {
	switch {
	case !rl.links.Node.IsResumable(says.Session):
		return nil, errors.New("there is no such session here")
	case !says.Secure:
		return newPeerWire(w, says), nil
	case rl.cfg.TLS == nil:
		return nil, errors.New("peers with TLS are relayed only between nodes with Config.TLS")
	}
	state := tls.ConnectionState{HandshakeComplete: true}
	for _, der := range says.Chain {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		state.PeerCertificates = append(state.PeerCertificates, cert)
	}
	if len(state.PeerCertificates) > 0 {
		state.VerifiedChains = [][]*x509.Certificate{state.PeerCertificates}
	}
	return &securePeerWire{*newPeerWire(w, says), state}, nil
}

// dialTLS returns the TLS configuration for a node to relay to; nil: no TLS.
func (rl *Relay) dialTLS() *tls.Config {
	if rl.cfg.TLS == nil {
		return nil
	}
	secure := rl.cfg.TLS.Clone()
	secure.ServerName = rl.cfg.Identity
	return secure
}

// listenTLS returns the TLS configuration for nodes that relay to this one, which have to prove
// that they belong to the name; nil: no TLS.
func (rl *Relay) listenTLS() *tls.Config {
	if rl.cfg.TLS == nil {
		return nil
	}
	return onlyOf(rl.cfg.Identity, rl.cfg.TLS)
}

// onlyOf returns c, and all configurations that c may select, with the requirement that a client
// proves an identity.
func onlyOf(identity string, c *tls.Config) *tls.Config {
	c = c.Clone()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	verify, choose := c.VerifyConnection, c.GetConfigForClient
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if err := s.PeerCertificates[0].VerifyHostname(identity); err != nil {
			return err
		}
		if verify != nil {
			return verify(s)
		}
		return nil
	}
	if choose != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen != nil && err == nil {
				chosen = onlyOf(identity, chosen)
			}
			return chosen, err
		}
	}
	return c
}

// natsStreamWire is the interface of wires through NATS.
type natsStreamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Meter
	transport.Admitted
}

// peerWire is a Wire on which another node relays a peer. Its address is that of the peer, and not
// of the node.
type peerWire struct {
	natsStreamWire
	from    peerAddr // fixed, as private is
	private bool
}

// securePeerWire is the Wire of a peer that has TLS with the other node.
type securePeerWire struct {
	peerWire
	state tls.ConnectionState // fixed
}

// peerAddr is the address of a peer, as seen by another node.
type peerAddr struct{ network, addr string } // fixed

// Network implements net.Addr.
func (a peerAddr) Network() string { return a.network }

// String implements net.Addr.
func (a peerAddr) String() string { return a.addr }

// RemoteAddr implements wire.Wire.
func (w *peerWire) RemoteAddr() net.Addr { return w.from }

// Private implements wire.Private.
func (w *peerWire) Private() bool { return w.private }

// ConnectionState implements wire.Secure.
func (w *securePeerWire) ConnectionState() tls.ConnectionState { return w.state }

// newPeerWire returns the Wire of a peer that is relayed over w, a wire through NATS.
func newPeerWire(w wire.Wire, says relayHeader) *peerWire {
	return &peerWire{w.(natsStreamWire), peerAddr{says.Network, says.Addr}, wire.IsPrivate(w)}
}
