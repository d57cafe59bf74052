package gateway

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/localpeer"
	"github.com/asterisque-go/asterisque/codec"
)

const (
	// limits of the messages of one endpoint that wait to be begun or rejected
	endpointPending      = 512
	endpointPendingBytes = 4 << 20
)

// endpointPeerID is the id of the peer of a node that makes the calls of its endpoints.
const endpointPeerID = "nats endpoint"

// endpoints are the functions of a node that serve requests of NATS. A nil *endpoints has none.
type endpoints struct {
	list []*endpoint     // fixed, as peer is
	peer *localpeer.Peer // makes their calls
}

// newEndpoints begins to serve functions of svc, with the name of the node as part of subjects. ctx
// bounds the wait. The error names an invalid endpoint, wraps the error of a node that rejects the
// peer for the calls, or wraps nats.ErrPermissionViolation if the server does not allow a subject.
func newEndpoints(ctx context.Context, nc *nats.Conn, name string, list []Endpoint, svc *asterisque.Service, node *asterisque.Node) (*endpoints, error) {
	if len(list) == 0 {
		return nil, nil
	}
	list, err := complete(list, name, svc)
	if err != nil {
		return nil, err
	}
	peer, err := localpeer.Connect(ctx, node, endpointPeerID, codec.JSON)
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
	return kv.Subscribed(ctx, nc, before, subjects...)
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

// close stops receiving requests, and waits until the received ones are answered. If ctx ends
// first, it ends the running ones and returns the error of ctx.
func (e *endpoints) close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	defer e.cut()
	for _, s := range e.list {
		s.sub.Drain() // fails if the connection is closed, and then no more requests arrive
	}
	for _, s := range e.list {
		if err := s.finished(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cut ends all requests at once. Goroutines of calls may still be returning.
func (e *endpoints) cut() {
	if e == nil {
		return
	}
	for _, s := range e.list {
		s.sub.Unsubscribe() // fails if it has ended, or if the connection is closed
	}
	e.peer.Close()
}
