package gateway

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

const (
	// endpointTime is the default timeout of a request.
	endpointTime = 10 * time.Second
	// endpointCalls is the maximum number of concurrent requests of one endpoint.
	endpointCalls = 128
)

// Endpoint is a function that clients of NATS can call, as in the Endpoint of package cluster.
type Endpoint struct {
	Function uint16
	Subject  string        // empty: made of the names of the node and the function
	Queue    string        // the queue group; empty: that of package micro
	Timeout  time.Duration // 0: endpointTime
}

// endpointSubject matches a subject without wildcards.
var endpointSubject = regexp.MustCompile(`^[^\s.*>$][^\s.*>]*(\.[^\s.*>]+)*$`)

// complete returns the endpoints with their defaults, or an error for an endpoint that is not
// possible.
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

// offeredFunction is a function, with its name for the tools of NATS.
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

// fillIn sets the defaults.
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

// carriesStream reports whether calls of a function carry Blocks of a type. Only the signatures of
// such functions contain these words.
func carriesStream(f asterisque.FunctionInfo) bool {
	return strings.Contains(f.Signature, ", caller sends ")
}

// endpointNames makes distinct names that the tools of NATS accept.
type endpointNames map[string]bool

// pick returns a name for a function, as close as possible to called.
func (n endpointNames) pick(called string, function uint16) string {
	number := "_" + strconv.Itoa(int(function))
	name := strings.Map(endpointRune, called)
	if name == "" {
		name = "function" + number
	}
	for n[name] {
		name += number
	}
	n[name] = true
	return name
}

// endpointRune returns r, or its replacement in names of endpoints.
func endpointRune(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
		return r
	}
	return '_'
}
