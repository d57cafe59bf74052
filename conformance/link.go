package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque/wire"
)

// largest is the limit of section 2 for a frame.
const largest = 66560

// queued is how many frames of the peer are queued for the scenario before the wire is not read any
// more.
const queued = 4096

// peerFrame is a frame of the peer, or the reason of the end.
type peerFrame struct {
	frame []byte
	err   error
}

// peerLink is one connection with the peer. The goroutine that reads it ends when the wire is
// closed.
type peerLink struct {
	wire     wire.Wire
	arrivals chan peerFrame // closed behind the error
	done     chan struct{}
	first    []byte // a frame that was read before, if there is one
}

func newLink(w wire.Wire) *peerLink {
	l := &peerLink{wire: w, arrivals: make(chan peerFrame, queued), done: make(chan struct{})}
	go l.read()
	return l
}

func (l *peerLink) read() {
	defer close(l.arrivals)
	for {
		frame, err := l.wire.ReadFrame(largest)
		select {
		case l.arrivals <- peerFrame{bytes.Clone(frame), err}:
		case <-l.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// next returns the next frame of the peer. If the peer sends none in time the error is that of ctx.
func (l *peerLink) next(ctx context.Context) ([]byte, error) {
	if frame := l.first; frame != nil {
		l.first = nil
		return frame, nil
	}
	select {
	case a, ok := <-l.arrivals:
		if !ok {
			return nil, errors.New("the wire has ended")
		}
		if a.err != nil {
			return nil, fmt.Errorf("the wire ended: %w", a.err)
		}
		return a.frame, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *peerLink) send(ctx context.Context, frame []byte) error {
	stop := context.AfterFunc(ctx, func() { l.wire.Close() })
	defer stop()
	return l.wire.WriteFrames([][]byte{frame})
}

// close may be called once.
func (l *peerLink) close() {
	close(l.done)
	l.wire.Close()
	for range l.arrivals { // until the reader has ended
	}
}
