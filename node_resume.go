package asterisque

import (
	"context"
)

// former implements resumer.
func (n *Node) former(ctx context.Context, was *previousSession, p *Peer) (_ *Session, elsewhere *SessionRecord, err error) {
	if was.session == (SessionID{}) {
		return nil, nil, nil
	}
	n.awaitBegin(ctx, was.session)
	r, ok, err := n.records.get(ctx, was.session)
	switch {
	case err != nil && n.cfg.elsewhere != nil:
		return nil, nil, errAnywhere
	case !ok:
		return nil, nil, nil
	}
	n.mu.Lock()
	s := n.resumable[was.session]
	n.mu.Unlock()
	switch {
	case s == nil && r.Node != n.cfg.id:
		return nil, &r, nil
	case s == nil || !s.res.Entitles(was.secret) || !s.res.ProvedBy(p.identity()):
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

// RejectSession implements resumer. Shutdown waits for handshakes that are not rejected here.
func (n *Node) refusesSession(p *Peer) error {
	if n.drain.hasBegun() {
		return errNodeClosed
	}
	return n.owners.RejectSession(p.quotaName())
}

// IsResumable reports whether the node has a session with this id that the connecting peer may
// resume; see [WithResume].
func (n *Node) IsResumable(id SessionID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.resumable[id] != nil
}
