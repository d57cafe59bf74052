package cluster

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// endpoint is a function that serves requests of NATS.
type endpoint struct {
	Endpoint // fixed, as all up to running; with its defaults
	nc       *nats.Conn
	peer     *endpointPeer
	sub      *nats.Subscription
	drained  chan struct{} // closed when no more requests arrive
	running  chan struct{} // semaphore of the running requests

	meter endpointMeter // has its own lock
}

func newEndpoint(nc *nats.Conn, of Endpoint, peer *endpointPeer) *endpoint {
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
	errLeaving       = codec.ErrUnavailable.Withf("the node leaves the cluster: the call may have run or not")
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
	ctx, cancel := context.WithTimeout(e.peer.life, e.Timeout)
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
	result, err := asterisque.CallOn(ctx, e.peer.conn, e.Function, params, opts...)
	if err != nil && e.peer.life.Err() != nil {
		err = errLeaving
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
