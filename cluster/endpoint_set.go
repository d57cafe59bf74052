package cluster

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

const (
	// what may wait of one endpoint for being begun, or refused
	endpointPending      = 512
	endpointPendingBytes = 4 << 20
)

// endpoints are the functions of a node that take requests of NATS. nil has none.
type endpoints struct {
	list []*endpoint   // these are fixed
	peer *endpointPeer // makes their calls
}

// newEndpoints begins to serve the functions of a node, whose name is part of subjects. svc has
// them. ctx ends the wait. The error names what of the list does not fit, or wraps that of the node
// if it does not let the peer in which calls them, or nats.ErrPermissionViolation if the server
// does not allow a subject.
func newEndpoints(ctx context.Context, nc *nats.Conn, name string, list []Endpoint, svc *asterisque.Service, node *asterisque.Node) (*endpoints, error) {
	if len(list) == 0 {
		return nil, nil
	}
	list, err := complete(list, name, svc)
	if err != nil {
		return nil, err
	}
	peer, err := newPeer(ctx, node, endpointPeerID, codec.JSON)
	if err != nil {
		return nil, err
	}
	e := &endpoints{peer: peer}
	if err := e.begin(ctx, nc, list); err != nil {
		e.cut()
		return nil, err
	}
	return e, nil
}

func (e *endpoints) begin(ctx context.Context, nc *nats.Conn, list []Endpoint) error {
	before := nc.LastError()
	var subjects []string
	for _, of := range list {
		s := newEndpoint(nc, of, e.peer)
		if err := s.subscribe(); err != nil {
			return err
		}
		e.list = append(e.list, s)
		subjects = append(subjects, of.Subject)
	}
	return subscribed(ctx, nc, before, subjects...)
}

// of returns the endpoints of a function.
func (e *endpoints) of(function uint16) (list []*endpoint) {
	if e == nil {
		return nil
	}
	for _, s := range e.list {
		if s.Function == function {
			list = append(list, s)
		}
	}
	return list
}

// close takes no more requests, and waits until those that have come are answered, or until ctx
// ends, when what runs is cut. The error is that of ctx.
func (e *endpoints) close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	defer e.cut()
	for _, s := range e.list {
		s.sub.Drain() // fails if the connection is closed, and then nothing more comes
	}
	for _, s := range e.list {
		if err := s.finished(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cut ends everything at once. Goroutines of calls may still be on their way out.
func (e *endpoints) cut() {
	for _, s := range e.list {
		s.sub.Unsubscribe() // fails if that is done, or if the connection is closed
	}
	e.peer.close()
}
