package gateway

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/localpeer"
	"github.com/asterisque-go/asterisque/codec"
)

// endpoint is a function that serves requests of NATS.
type endpoint struct {
	Endpoint // fixed, as all up to running; with its defaults
	nc       *nats.Conn
	peer     *localpeer.Peer
	sub      *nats.Subscription
	drained  chan struct{} // closed when no more requests arrive
	running  chan struct{} // semaphore of the running requests

	meter endpointMeter // has its own lock
}

func newEndpoint(nc *nats.Conn, of Endpoint, peer *localpeer.Peer) *endpoint {
	return &endpoint{
		Endpoint: of, nc: nc, peer: peer,
		drained: make(chan struct{}), running: make(chan struct{}, endpointCalls),
	}
}

func (e *endpoint) subscribe() (err error) {
	if e.sub, err = e.nc.QueueSubscribe(e.Subject, e.Queue, e.arrived); err != nil {
		return err
	}
	e.sub.SetClosedHandler(func(string) { close(e.drained) })
	return e.sub.SetPendingLimits(endpointPending, int(max(endpointPendingBytes, 2*e.nc.MaxPayload())))
}

// finished waits until no request runs, and no more arrive.
func (e *endpoint) finished(ctx context.Context) error {
	select {
	case <-e.drained:
	case <-ctx.Done():
		return ctx.Err()
	}
	for range endpointCalls {
		select {
		case e.running <- struct{}{}:
			defer func() { <-e.running }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

var (
	errManyRequests  = codec.ErrOverloaded.Withf("%d requests of this endpoint run already: try again later", endpointCalls)
	errReservedReply = codec.ErrUnauthorized.Withf("a request was dropped: its reply subject begins with '$'")
)

// arrived begins a request, or rejects it. Package nats calls it for one request after the other.
func (e *endpoint) arrived(m *nats.Msg) {
	if reserved(m.Reply) {
		e.meter.ended(0, errReservedReply)
		return
	}
	select {
	case e.running <- struct{}{}:
		go e.serve(m) // ends with its call, which ends with its timeout or with the peer
	default:
		e.answer(m, 0, nil, errManyRequests)
	}
}

// serve runs a request.
func (e *endpoint) serve(m *nats.Msg) {
	defer func() { <-e.running }()
	begin := time.Now()
	result, err := e.call(m)
	if most := e.nc.MaxPayload(); err == nil && int64(len(result)) > most {
		err = codec.ErrTooLarge.Withf("the result has %d bytes, and a message of this NATS server %d at most (max_payload): ask for less", len(result), most)
	}
	e.answer(m, time.Since(begin), result, err)
}

// call calls the function of a request.
func (e *endpoint) call(m *nats.Msg) ([]byte, error) {
	ctx, cancel := context.WithTimeout(e.peer.Context(), e.Timeout)
	defer cancel()
	params := m.Data
	if len(params) == 0 {
		params = []byte("null")
	}
	// While the node rejects its peer, waiting would only delay requests that other members of the
	// queue group could serve.
	opts := []asterisque.CallOption{asterisque.WithFailFast()}
	if trace := traceOf(m.Header); trace != nil {
		opts = append(opts, asterisque.WithCallInterceptors(traced(trace)))
	}
	result, err := asterisque.CallOn(ctx, e.peer.Connection(), e.Function, params, opts...)
	if err != nil && e.peer.Context().Err() != nil {
		err = localpeer.ErrLeaving
	}
	return result, err
}

// answer counts a request, and replies to it if it has a reply subject.
func (e *endpoint) answer(m *nats.Msg, took time.Duration, result []byte, err error) {
	reply := &nats.Msg{Subject: m.Reply, Data: result}
	var failed *asterisque.Abort
	if err != nil {
		failed = codec.AbortOf(err)
		reply.Data = nil
		reply.Header = nats.Header{
			micro.ErrorHeader:     {explanation(failed)},
			micro.ErrorCodeHeader: {strconv.Itoa(int(failed.Code))},
		}
	}
	e.meter.ended(took, failed)
	if m.Reply != "" {
		e.nc.PublishMsg(reply) // fails without a connection, which the caller notices as well
	}
}

// explanation returns the text of an error. The header for it must not be empty.
func explanation(a *asterisque.Abort) string {
	if a.Message == "" {
		return a.Code.String()
	}
	return a.Message
}

// endpointMeter counts the requests of an endpoint, like package micro.
type endpointMeter struct {
	mu       sync.Mutex
	requests int           // guarded by mu
	errors   int           // guarded by mu
	took     time.Duration // total time; guarded by mu
	last     string        // the last error, with its code; guarded by mu
}

// ended counts a request with its duration. failed is nil for a success.
func (m *endpointMeter) ended(took time.Duration, failed *asterisque.Abort) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.took += took
	if failed != nil {
		m.errors++
		m.last = fmt.Sprintf("%d:%s", failed.Code, explanation(failed))
	}
}

// fill copies the counts to s.
func (m *endpointMeter) fill(s *micro.EndpointStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.NumRequests, s.NumErrors, s.ProcessingTime, s.LastError = m.requests, m.errors, m.took, m.last
	if m.requests > 0 {
		s.AverageProcessingTime = m.took / time.Duration(m.requests)
	}
}

const (
	mostTrace  = 512 // maximum bytes in a call
	mostParent = 128
)

// traceOf returns the trace context of a request in the format of a call: a traceparent of W3C
// Trace Context, and after a line feed the tracestate, if it fits. nil: there is none. It is not
// validated here, since its consumer does so anyway.
func traceOf(h nats.Header) []byte {
	parent, state := header(h, "traceparent", "Traceparent"), header(h, "tracestate", "Tracestate")
	if parent == "" || len(parent) > mostParent {
		return nil
	}
	if state == "" || len(parent)+1+len(state) > mostTrace {
		return []byte(parent)
	}
	return []byte(parent + "\n" + state)
}

// header returns the value of a header with several spellings: NATS keeps the case of headers, and
// HTTP libraries write them in the case of HTTP.
func header(h nats.Header, spellings ...string) string {
	for _, s := range spellings {
		if v := h.Get(s); v != "" {
			return v
		}
	}
	return ""
}

// traced sets the trace context of a call.
func traced(trace []byte) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if err := c.SetTrace(trace); err != nil {
			return err
		}
		return next(ctx, c)
	}
}
