package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
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
func (rs *sessionResumer) ask(ctx context.Context, w wire.Wire, r asterisque.SessionRecord, p asterisque.Peer) (wire.Wire, error) {
	stop := context.AfterFunc(ctx, func() { w.Close() })
	answer, err := rs.exchange(w, r, p)
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

func (rs *sessionResumer) exchange(w wire.Wire, r asterisque.SessionRecord, p asterisque.Peer) (answer string, err error) {
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

// listen accepts peers that other nodes relay, until this node leaves the cluster.
func (rs *sessionResumer) listen(start context.Context) error {
	c := rs.cluster
	ln, err := natswire.Listen(start, c.nc, rs.meeting(c.cfg.ID), rs.listenTLS())
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if g, ok := ln.(transport.Guarded); ok {
		g.Guard(c.node)
	}
	context.AfterFunc(c.ctx, func() { ln.Close() })
	c.running.Go(func() { // ends with ln
		for {
			w, err := ln.Accept()
			if err != nil {
				return
			}
			c.running.Go(func() { rs.take(w) }) // ends after relayTime, and the handshake
		}
	})
	return nil
}

// take resumes the session that another node relays over w.
func (rs *sessionResumer) take(w wire.Wire) {
	c := rs.cluster
	ctx, cancel := context.WithTimeout(c.ctx, relayTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { w.Close() })
	peer, err := rs.read(w)
	if err == nil {
		err = w.WriteFrames([][]byte{[]byte(isHere)})
	}
	if !stop() || err != nil {
		w.Close()
		return
	}
	if _, err := c.node.AcceptRelayed(ctx, peer); err != nil {
		c.node.Logger().Info("cluster: a session that another node relays cannot be resumed", "addr", peer.RemoteAddr(), "error", err)
	}
}

// read returns the Wire of the peer that another node relays over w. If this node does not have its
// session, read reports that to the other node and returns an error.
func (rs *sessionResumer) read(w wire.Wire) (wire.Wire, error) {
	frame, err := w.ReadFrame(mostRelayed)
	if err != nil {
		return nil, err
	}
	var says relayHeader
	if err := json.Unmarshal(frame, &says); err != nil {
		return nil, err
	}
	peer, err := rs.peer(w, says)
	if err != nil {
		w.WriteFrames([][]byte{[]byte(isNot)})
		rs.cluster.node.Logger().Info("cluster: a session is not resumed that another node relays", "session", says.Session, "addr", says.Addr, "error", err)
	}
	return peer, err
}

// peer returns the Wire of the peer in says. If the peer has TLS with the other node, the two nodes
// need TLS as well: only then has the other node proved that it belongs to the name, and can be
// trusted for the identity of the peer.
func (rs *sessionResumer) peer(w wire.Wire, says relayHeader) (wire.Wire, error) {
	switch {
	case !rs.cluster.node.IsResumable(says.Session):
		return nil, errors.New("there is no such session here")
	case !says.Secure:
		return newPeerWire(w, says), nil
	case rs.cluster.cfg.TLS == nil:
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
func (rs *sessionResumer) dialTLS() *tls.Config {
	if rs.cluster.cfg.TLS == nil {
		return nil
	}
	secure := rs.cluster.cfg.TLS.Clone()
	secure.ServerName = rs.cluster.cfg.Identity
	return secure
}

// listenTLS returns the TLS configuration for nodes that relay to this one, which have to prove
// that they belong to the name; nil: no TLS.
func (rs *sessionResumer) listenTLS() *tls.Config {
	if rs.cluster.cfg.TLS == nil {
		return nil
	}
	return onlyOf(rs.cluster.cfg.Identity, rs.cluster.cfg.TLS)
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
