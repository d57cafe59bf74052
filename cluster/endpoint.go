package cluster

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

const (
	// endpointTime is how long a request may take unless its Endpoint says otherwise.
	endpointTime = 10 * time.Second
	// endpointCalls is how many requests of one endpoint run at once.
	endpointCalls = 128
)

// Endpoint offers one function of a node to everybody who may publish to a subject of NATS, in any
// language, without a session of asterisque: as an endpoint of a NATS micro service, which
// `nats micro info` shows and `nats request` calls. The payload of a request is the parameters as
// JSON; none at all stands for null. The payload of the reply is the result as JSON.
//
//	nats request orders.price '{"article":"pencil"}'
//
// # Failures
//
// A call that fails has a reply without payload, with the headers of package micro: the number of
// the code, such as 7 for ErrOverloaded, in Nats-Service-Error-Code, and the message in
// Nats-Service-Error. A result that is larger than the max_payload of the server fails with
// ErrTooLarge, when the call has been run.
//
// # Calls
//
// The node serves these calls like those of any peer, with its interceptors, limits, workers and
// numbers. All endpoints of a node together are one peer, within the program, by the id "nats
// endpoint" ([asterisque.Peer].ID), without TLS and credential. [asterisque.Access].Accept is asked
// about it as about any peer, and may grant it a Service of its own. Other peers can call
// themselves so, too, but the Network of its RemoteAddr is "mem", which only peers within the
// program have. It is in [asterisque.Node.Sessions], has the codec JSON ([asterisque.WithCodecs]),
// and offers no functions to call back. Who has sent a request is not known: NATS does not say. Of
// its headers, "traceparent" and "tracestate" travel with the call as its trace, as package otel
// reads it.
//
// A function that carries a stream cannot be offered. One of [asterisque.Service.Handle] gets the
// payload as it came, JSON or not, and its result is sent as it is.
//
// # Limits
//
// A request runs for at most Timeout, because NATS tells of no deadline; then the context of the
// handler ends, and the reply is ErrExpired. 128 requests of one endpoint run at once; others are
// refused at once, with ErrOverloaded: nothing queues. So an endpoint holds no more than 128 times
// the max_payload of the server, beside what the node lets a session hold. What comes while 512
// requests wait for that answer, or more than 4 MiB or two of the largest messages, is dropped, as
// NATS drops what a slow consumer does not take.
//
// A request without a reply subject is run, and its result dropped. One whose reply subject begins
// with '$', as those of JetStream do, is dropped: it would let others publish with the permissions
// of the node where only the server and its administrators should.
//
// # Who may do what
//
// Who may publish to the subject may call the function, and the permissions of the NATS server are
// the only lock, unless an interceptor asks for more. The user of the node has to be allowed to
// subscribe to the subject and to publish to the inboxes of callers, "_INBOX.>" or whatever their
// prefix is; and better to nothing beyond what nodes need. For a request names the subject of its
// reply, and the node publishes there what its function returns, whether or not the sender of the
// request may do that. allow_responses of the server is no lock against it: it allows whatever a
// request has named.
type Endpoint struct {
	// Function is the number of the function, which has to be in the Service of the node.
	Function uint16

	// Subject is where requests come to: a subject of NATS without wildcards that does not begin
	// with '$'. Empty is "<name of the node>.<name of the function>", where '_' stands for
	// whatever a name of package micro does not have: all but A-Z, a-z, 0-9, '-' and '_'. Different
	// subjects may lead to one function, and one subject to one function.
	Subject string

	// Queue is the queue group: of all who have the same one at the subject, one gets each request.
	// Empty is "q", as in package micro.
	Queue string

	// Timeout is how long a request may take, until its result is there. 0 is 10 seconds.
	Timeout time.Duration
}

// endpointSubject is a subject without wildcards.
var endpointSubject = regexp.MustCompile(`^[^\s.*>$][^\s.*>]*(\.[^\s.*>]+)*$`)

// complete returns the endpoints with their defaults, or what of them cannot be offered.
func complete(list []Endpoint, name string, svc *asterisque.Service) ([]Endpoint, error) {
	functions := functionsOf(svc)
	taken := make(map[string]uint16)
	full := make([]Endpoint, 0, len(list))
	for _, e := range list {
		f, ok := functions[e.Function]
		if !ok {
			return nil, fmt.Errorf("the endpoint of function %d: the Service of the node has no such function", e.Function)
		}
		e.fillIn(name, f.tool)
		if err := e.check(f); err != nil {
			return nil, fmt.Errorf("the endpoint of function %d %q: %w", e.Function, f.Name, err)
		}
		if other, again := taken[e.Subject]; again {
			return nil, fmt.Errorf("the endpoints of functions %d and %d have the same subject %q: one of them needs another", other, e.Function, e.Subject)
		}
		taken[e.Subject] = e.Function
		full = append(full, e)
	}
	return full, nil
}

// offeredFunction is a function, and what NATS's tools call it.
type offeredFunction struct {
	asterisque.FunctionInfo
	tool string
}

func functionsOf(svc *asterisque.Service) map[uint16]offeredFunction {
	all := make(map[uint16]offeredFunction)
	if svc == nil {
		return all
	}
	names := endpointNames{}
	for _, f := range svc.Functions() {
		all[f.Number] = offeredFunction{f, names.pick(f.Name, f.Number)}
	}
	return all
}

// fillIn sets what is left to the defaults.
func (e *Endpoint) fillIn(name, function string) {
	if e.Subject == "" {
		e.Subject = name + "." + function
	}
	if e.Queue == "" {
		e.Queue = micro.DefaultQueueGroup
	}
	if e.Timeout == 0 {
		e.Timeout = endpointTime
	}
}

func (e *Endpoint) check(f offeredFunction) error {
	switch {
	case carriesStream(f.FunctionInfo):
		return fmt.Errorf("it carries a stream, which one request and one reply cannot: %s", f.Signature)
	case !endpointSubject.MatchString(e.Subject):
		return fmt.Errorf("%q cannot be its subject: no spaces, '*' and '>', a '.' only between other characters, no '$' at the beginning", e.Subject)
	case strings.ContainsAny(e.Queue, " \t\r\n"):
		return fmt.Errorf("%q cannot be its queue group: it has spaces", e.Queue)
	case e.Timeout < 0:
		return fmt.Errorf("its Timeout %v is negative: 0 is the default, %v", e.Timeout, endpointTime)
	}
	return nil
}

// carriesStream reports whether calls of a function carry Blocks of a type. The signature alone
// tells, and has these words for such functions only.
func carriesStream(f asterisque.FunctionInfo) bool {
	return strings.Contains(f.Signature, ", caller sends ")
}
