package natswire

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// linkUser is a user of a link.
type linkUser interface {
	// disconnected is called when the connection was lost. Unless forGood, package nats makes
	// another.
	disconnected(err error, forGood bool)
}

// link is a connection to NATS that is shared by wires and at most one listener. It notifies them
// when the connection is lost. A link that owns its connection closes it with the last user.
type link struct {
	nc   *nats.Conn // these are fixed
	own  bool       // the link is the only user of nc
	beat time.Duration

	lost, shut chan nats.Status // package nats reports a lost, or closed, connection
	done       chan struct{}    // closed with the last user

	mu    sync.Mutex
	users map[linkUser]struct{} // guarded by mu; nil when the link has ended
}

// newLink returns a link, which ends when the last user is removed, or by release if there was
// none.
func newLink(nc *nats.Conn, own bool) *link {
	l := &link{
		nc: nc, own: own, beat: beat, users: make(map[linkUser]struct{}), done: make(chan struct{}),
		// separate channels: package nats drops a channel that has not been read at the next event
		lost: nc.StatusChanged(nats.RECONNECTING), shut: nc.StatusChanged(nats.CLOSED),
	}
	go l.watch() // ends when the link is over
	return l
}

// watch notifies the users when the connection is lost.
func (l *link) watch() {
	for {
		select {
		case <-l.lost:
			select {
			case <-l.done:
				return
			default:
				l.tell(false)
			}
		case <-l.shut:
			l.tell(true)
			return
		case <-l.done:
			return
		}
	}
}

// tell calls disconnected of all users.
func (l *link) tell(forGood bool) {
	err := disconnected(l.nc.LastError())
	l.mu.Lock()
	all := make([]linkUser, 0, len(l.users))
	for u := range l.users {
		all = append(all, u)
	}
	l.mu.Unlock()
	for _, u := range all {
		u.disconnected(err, forGood)
	}
}

// add registers u as a user of the link.
func (l *link) add(u linkUser) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == nil || l.nc.IsClosed() {
		return ErrDisconnected
	}
	l.users[u] = struct{}{}
	return nil
}

// remove is called when u does not need the link any more. Without users it ends.
func (l *link) remove(u linkUser) {
	l.mu.Lock()
	delete(l.users, u)
	l.mu.Unlock()
	l.release()
}

// release ends the link if it has no users.
func (l *link) release() {
	l.mu.Lock()
	over := l.users != nil && len(l.users) == 0
	if over {
		l.users = nil
	}
	l.mu.Unlock()
	if !over {
		return
	}
	close(l.done)
	l.nc.RemoveStatusListener(l.lost)
	l.nc.RemoveStatusListener(l.shut)
	if l.own {
		l.nc.Close() // Close sends queued messages first
	}
}
