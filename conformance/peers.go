package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// fresh is how long an accepted connection is considered usable: less than the 5 seconds that are
// usual for a handshake.
const fresh = 2 * time.Second

// peers makes connections with the peer under test, a new one for each scenario.
type peers interface {
	// next returns a connection. If session is not nil, that is the next one of that session.
	next(ctx context.Context, session []byte) (*peerLink, error)
	close()
}

// dialledPeers are the peers that listen.
type dialledPeers struct {
	url  string
	opts wire.Options
}

func (d dialledPeers) next(ctx context.Context, _ []byte) (*peerLink, error) {
	w, err := wire.Dial(ctx, d.url, d.opts)
	if err != nil {
		return nil, err
	}
	return newLink(w), nil
}

func (dialledPeers) close() {}

// acceptedPeers are the peers that dial in. Each connection goes to a waiting scenario: by the
// session that its Sync names, or else to any.
type acceptedPeers struct {
	ln      wire.Listener
	fresh   time.Duration  // see the constant
	waiting sync.WaitGroup // for the goroutines of accept and sort
	quit    chan struct{}  // closed by close
	any     chan *peerLink // those without a session

	mu   sync.Mutex
	kept map[string]chan *peerLink // guarded by mu; by session
}

func accept(ln wire.Listener, fresh time.Duration) *acceptedPeers {
	a := &acceptedPeers{ln: ln, fresh: fresh, quit: make(chan struct{}), any: make(chan *peerLink), kept: map[string]chan *peerLink{}}
	a.waiting.Go(a.serve)
	return a
}

func (a *acceptedPeers) serve() {
	for {
		w, err := a.ln.Accept()
		if err != nil {
			return
		}
		a.waiting.Go(func() { a.sort(newLink(w)) })
	}
}

// sort hands a connection to its owner, if that asks for it in time.
func (a *acceptedPeers) sort(l *peerLink) {
	ctx, cancel := context.WithTimeout(context.Background(), a.fresh)
	defer cancel()
	to := a.any
	select {
	case first, ok := <-l.arrivals:
		if !ok || first.err != nil {
			l.close()
			return
		}
		l.first = first.frame
		if id := sessionOf(first.frame); len(id) > 0 {
			to = a.of(id)
		}
	case <-ctx.Done():
	case <-a.quit:
	}
	select {
	case to <- l:
	case <-ctx.Done():
		l.close()
	case <-a.quit:
		l.close()
	}
}

// sessionOf returns the session id in a Sync.
func sessionOf(frame []byte) []byte {
	list, err := decode(frame)
	if err != nil || len(list) != 4 {
		return nil
	}
	fields, _ := list[3].(map[any]any)
	id, _ := fields[int64(2)].([]byte)
	return id
}

func (a *acceptedPeers) of(session []byte) chan *peerLink {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.kept[string(session)]
	if c == nil {
		c = make(chan *peerLink)
		a.kept[string(session)] = c
	}
	return c
}

func (a *acceptedPeers) next(ctx context.Context, session []byte) (*peerLink, error) {
	from := a.any
	if session != nil {
		from = a.of(session)
	}
	select {
	case l := <-from:
		return l, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the peer has not dialled: %w", ctx.Err())
	}
}

func (a *acceptedPeers) close() {
	close(a.quit)
	a.ln.Close()
	a.waiting.Wait()
}
