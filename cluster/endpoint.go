package cluster

import (
	"context"
	"maps"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
)

// Endpoint makes one function of a node available to all clients that may publish to a subject of
// NATS, in any language, without a session of asterisque. It is an endpoint of a NATS micro
// service, which `nats micro info` shows and `nats request` calls. The payload of a request
// contains the parameters as JSON; an empty payload stands for null. The payload of the reply is
// the result as JSON.
//
//	nats request orders.price '{"article":"pencil"}'
//
// # Failures
//
// A failed call has a reply without payload, with the headers of package micro: the number of the
// code, such as 7 for ErrOverloaded, in Nats-Service-Error-Code, and the message in
// Nats-Service-Error. A result that exceeds the max_payload of the server fails with ErrTooLarge
// after the call has run.
//
// # Calls
//
// The node serves these calls like those of any peer, with its interceptors, limits, workers and
// statistics. All endpoints of a node together are one peer within the program, with the id "nats
// endpoint" ([asterisque.Peer].ID), without TLS and credential. [asterisque.Access].Accept is
// called for it as for any peer, and may grant it a Service of its own. Other peers can use the
// same id, but the Network of its RemoteAddr is "mem", which only peers within the program have.
// The peer is in [asterisque.Node.Sessions], has the codec JSON ([asterisque.WithCodecs]), and
// offers no functions to call back. The sender of a request is unknown, because NATS does not
// provide it. The headers "traceparent" and "tracestate" travel with the call as its trace, in the
// format of package otel.
//
// A function that carries a stream cannot be an endpoint. A function of [asterisque.Service.Handle]
// gets the raw payload, JSON or not, and its result is sent unchanged.
//
// # Limits
//
// A request runs for at most Timeout, because a NATS request has no deadline. Then the context of
// the handler ends, and the reply is ErrExpired. Up to 128 requests of one endpoint run at once.
// Further requests are rejected at once with ErrOverloaded: there is no queue. So an endpoint holds
// at most 128 times the max_payload of the server, in addition to the limits of a session. Requests
// are dropped while 512 of them, or more than 4 MiB or two of the largest messages, wait for this
// rejection, as NATS drops the messages of a slow consumer.
//
// A request without a reply subject is run, and its result is dropped. A request with a reply
// subject that begins with '$', like those of JetStream, is dropped: otherwise any sender could
// publish with the permissions of the node to subjects that are reserved for the server and its
// administrators.
//
// # Permissions
//
// Every client that may publish to the subject can call the function. The permissions of the NATS
// server are the only access control, unless an interceptor adds more. The user of the node needs
// permission to subscribe to the subject and to publish to the inboxes of callers, "_INBOX.>" or
// their own prefix. It should have no permissions beyond the needs of a node: a request names the
// subject of its reply, and the node publishes the result there, whether or not the sender of the
// request may publish there. allow_responses of the server does not protect against this: it allows
// every subject that a request has named.
type Endpoint struct {
	// Function is the number of a function in the Service of the node.
	Function uint16

	// Subject is the subject for requests: a subject of NATS without wildcards that does not begin
	// with '$'. Empty is "<name of the node>.<name of the function>", with '_' in place of all
	// characters that names of package micro cannot have: all but A-Z, a-z, 0-9, '-' and '_'.
	// Several subjects may lead to one function, but each subject leads to one function only.
	Subject string

	// Queue is the queue group: of the endpoints with the same subject and group, NATS gives each
	// request to one. Empty is "q", as in package micro.
	Queue string

	// Timeout is the maximum duration of a request, until its result is there. 0 is 10 seconds.
	Timeout time.Duration
}

// show exposes the node to plain NATS clients.
func (c *Cluster) show(start context.Context) (err error) {
	endpoints := make([]gateway.Endpoint, len(c.cfg.Endpoints))
	for i, e := range c.cfg.Endpoints {
		endpoints[i] = gateway.Endpoint(e)
	}
	metadata := maps.Clone(c.cfg.Metadata)
	if c.cfg.Region != "" {
		if metadata == nil {
			metadata = make(map[string]string)
		}
		metadata["asterisque.region"] = c.cfg.Region
	}
	c.gateway, err = gateway.Open(start, gateway.Config{
		NATS: c.nc, Node: c.node, Name: c.cfg.Name, ID: c.cfg.ID, Version: c.cfg.Version,
		Description: "a node of the cluster " + c.cfg.Cluster, Metadata: metadata,
		Subject: "asterisque.wire." + c.cfg.meeting(c.cfg.Name, c.cfg.ID),
		Service: c.cfg.Service, Endpoints: endpoints, Hidden: c.cfg.Hidden,
	})
	return err
}
