// Package gateway exposes one node to plain NATS clients, which have no session with it. Its
// [Endpoint]s serve requests with JSON: each request becomes a call of a peer within the program,
// and at most 128 of them run at once for each endpoint. NATS's own tools get answers about the
// node, its functions and their statistics, as of a service of package micro, at a bounded rate.
//
// Requests come from clients that NATS does not identify. A reply never goes to a subject of the
// server ("$JS.…"), where it could act with the permissions of the node.
package gateway

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
)

// Config describes the node of a [Gateway], and its use of NATS.
type Config struct {
	NATS        *nats.Conn
	Node        *asterisque.Node
	Name, ID    string              // of the node; tokens of a subject
	Version     string              // a semantic version; empty is 0.0.0
	Description string              // may be empty
	Metadata    map[string]string   // may be nil
	Subject     string              // shown as the subject of functions that only sessions call
	Service     *asterisque.Service // nil: the node has no functions
	Endpoints   []Endpoint
	Hidden      bool // NATS's own tools get no answers
}

// Gateway exposes a node to plain NATS clients.
type Gateway struct { // fixed
	offered *endpoints
	micro   *microResponder // nil: hidden
}

// Open exposes a node until [Gateway.Close]. ctx bounds the wait for NATS. The error names an
// invalid endpoint, wraps that of a node that rejects the peer for the calls, or wraps
// nats.ErrPermissionViolation if the server does not allow a subject.
func Open(ctx context.Context, c Config) (*Gateway, error) {
	offered, err := newEndpoints(ctx, c.NATS, c.Name, c.Endpoints, c.Service, c.Node)
	if err != nil {
		return nil, err
	}
	g := &Gateway{offered: offered}
	if c.Hidden {
		return g, nil
	}
	g.micro, err = newTools(ctx, c.NATS, toolsInfo{
		name: c.Name, id: c.ID, version: c.Version, description: c.Description,
		metadata: c.Metadata, subject: c.Subject, offered: offered,
	}, c.Service)
	if err != nil {
		offered.cut()
		return nil, err
	}
	return g, nil
}

// Close stops receiving requests, and waits until the received ones are answered. If ctx ends
// first, it ends the running ones and returns the error of ctx. It may be called again, and with a
// nil gateway.
func (g *Gateway) Close(ctx context.Context) error {
	if g == nil {
		return nil
	}
	if g.micro != nil {
		g.micro.close()
	}
	return g.offered.close(ctx)
}
