package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/handshake"
)

// former returns the session that a peer wants to resume, if the peer has its secret and its
// identity, or the record that names another node as its owner. An error means that another node
// may have the session.
func (n *Node) former(ctx context.Context, was *handshake.Proof, p *Peer) (_ *Session, elsewhere *SessionRecord, err error) {
	if was.Session == (SessionID{}) {
		return nil, nil, nil
	}
	n.awaitBegin(ctx, was.Session)
	r, ok, err := n.records.get(ctx, was.Session)
	switch {
	case err != nil && n.cfg.elsewhere != nil:
		return nil, nil, errAnywhere
	case !ok:
		return nil, nil, nil
	}
	n.mu.Lock()
	s := n.resumable[was.Session]
	n.mu.Unlock()
	switch {
	case s == nil && r.Node != n.cfg.id:
		return nil, &r, nil
	case s == nil || !s.res.Entitles(was.Secret) || !s.res.ProvedBy(p.identity()):
		return nil, nil, nil // the session decides: the record may be older
	}
	return s, nil, nil
}

// awaitBegin waits for the begin of a session. Its peer may have lost the Wire already.
func (n *Node) awaitBegin(ctx context.Context, id SessionID) {
	n.mu.Lock()
	begins := n.beginning[id]
	n.mu.Unlock()
	if begins == nil {
		return
	}
	select {
	case <-begins:
	case <-ctx.Done():
	}
}

// rejectSession returns the error by which a session of a peer is rejected, or nil. Shutdown waits
// for handshakes that are not rejected here.
func (n *Node) rejectSession(p *Peer) error {
	if n.drain.hasBegun() {
		return handshake.ErrNodeClosed
	}
	return n.Owners.RejectSession(p.quotaName())
}

// IsResumable reports whether the node has a session with this id that the connecting peer may
// resume; see [WithResume].
func (n *Node) IsResumable(id SessionID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.resumable[id] != nil
}
