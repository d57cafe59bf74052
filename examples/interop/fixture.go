package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// The side of -fixture announces low limits, so that scenarios reach them quickly, and keeps
// sessions without a wire for a while.
const (
	fixtureMessage = 256 << 10
	fixtureInbound = 5_000_000
	fixtureResume  = 10 * time.Second
	fixtureSilence = 3 * time.Second

	fixturePatience = 5 * time.Minute
)

// fixtureOptions are those of the fixture for the scenarios of spec/scenarios.json. A patient one
// keeps sessions for long, and never considers a peer lost.
func fixtureOptions(patient bool) []asterisque.Option {
	times, keeps := asterisque.Timeouts{Ping: time.Second, Silence: fixtureSilence}, fixtureResume
	if patient {
		times.Silence, times.Handshake, keeps = fixturePatience, fixturePatience, time.Minute
	}
	return []asterisque.Option{
		asterisque.WithLimits(asterisque.Limits{
			Inbound:    limits.Limits{Soft: limits.Amount{Bytes: fixtureInbound, Messages: 10_000}},
			MaxMessage: fixtureMessage,
			Window:     64 << 10, // so that large Blocks need more
		}),
		asterisque.WithResume(asterisque.Resume{For: keeps}),
		asterisque.WithTimeouts(times),
	}
}

// runFixture dials a URL repeatedly, until ctx ends: as soon as one session has begun it dials for
// the next.
func runFixture(ctx context.Context, f flags) error {
	cfg, err := trustingFile(f.cert)
	if err != nil {
		return err
	}
	opts := append(options("interop fixture", f.dial, f.codec, cfg, newService()), fixtureOptions(f.patient)...)
	node := asterisque.NewNode(opts...)
	defer node.Close() // ends the connections
	for ctx.Err() == nil {
		d := &fixtureDialer{url: f.dial, options: wire.Options{TLS: cfg}, made: make(chan struct{})}
		if err := d.connect(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// fixtureDialer dials for one connection: for its first session, and then only to resume that. A
// connection starts another session as soon as its peer drains; that one would belong to another
// scenario.
type fixtureDialer struct {
	url     string // these are fixed
	options wire.Options
	made    chan struct{} // closed when conn is set
	conn    *asterisque.Connection
}

// connect returns when a session has begun, or was refused by a scenario.
func (d *fixtureDialer) connect(ctx context.Context, node *asterisque.Node) (err error) {
	begun := make(chan struct{}, 1)
	d.conn, err = node.Connect(ctx, "", asterisque.ReconnectConfig{
		First: 20 * time.Millisecond, Most: 100 * time.Millisecond, Background: true, Dial: d.dial,
		OnState: func(*asterisque.Connection, asterisque.ConnectionState, error) {
			select {
			case begun <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	close(d.made)
	select {
	case <-begun:
	case <-ctx.Done():
	}
	return nil
}

func (d *fixtureDialer) dial(ctx context.Context) (wire.Wire, error) {
	<-d.made
	sess := d.conn.Session()
	if d.conn.State() == asterisque.Reconnecting && (sess == nil || !sess.Away()) {
		return nil, errors.New("the session cannot be resumed")
	}
	return wire.Dial(ctx, d.url, d.options)
}

// handleFixture adds the functions that the scenarios need beside the rest of the contract.
func handleFixture(svc *asterisque.Service, ev *events) {
	var mu sync.Mutex
	runs := map[string]int{} // guarded by mu
	tally.Handle(svc, func(_ context.Context, name string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[name]++
		return strconv.Itoa(runs[name]), nil
	})
	weigh.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[struct{}, string]) (int64, error) {
		return weight(ctx, p)
	})
	hoard.Handle(svc, func(ctx context.Context, name string, p *asterisque.Pipe[struct{}, string]) (int64, error) {
		ev.happen(name+" begun", name)
		if _, err := ev.wait(ctx, name+" released"); err != nil {
			return 0, err
		}
		return weight(ctx, p)
	})
	errand.Handle(svc, serveErrand)
	deliver.Handle(svc, func(ctx context.Context, order string) (string, error) {
		n, err := deliverBlocks(ctx, order)
		return told(strconv.FormatInt(n, 10), err)
	})
	pour.Handle(svc, func(ctx context.Context, order string, p *asterisque.Pipe[string, struct{}]) (string, error) {
		return order, sendBlocks(order, func(text string) error { return p.Send(ctx, text) })
	})
}

func weight(ctx context.Context, p *asterisque.Pipe[struct{}, string]) (n int64, err error) {
	for text, err := range p.All(ctx) {
		if err != nil {
			return n, err
		}
		n += int64(len(text))
	}
	return n, nil
}

// serveErrand calls its caller, in a call that is not nested in this one.
func serveErrand(ctx context.Context, order string) (string, error) {
	number, text, _ := strings.Cut(order, " ")
	function, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return "", asterisque.ErrBadParams.Withf("%q is no function", number)
	}
	apart, cancel := apartFrom(ctx)
	defer cancel()
	return told(asterisque.Func[string, string](uint16(function), "").Call(apart, asterisque.SessionOf(ctx), text))
}

// apartFrom returns a context for calls that are not nested in the one of ctx. It ends with ctx.
func apartFrom(ctx context.Context) (context.Context, func()) {
	apart, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	return apart, func() { stop(); cancel() }
}

func deliverBlocks(ctx context.Context, order string) (int64, error) {
	apart, cancel := apartFrom(ctx)
	defer cancel()
	call, err := weigh.Open(apart, asterisque.SessionOf(ctx), "")
	if err != nil {
		return 0, err
	}
	if err := sendBlocks(order, func(text string) error { return call.Send(apart, text) }); err != nil {
		return 0, err
	}
	if err := call.CloseSend(); err != nil {
		return 0, err
	}
	return call.Result(apart)
}

// sendBlocks sends the Blocks of an order: "BLOCKS SIZE".
func sendBlocks(order string, send func(text string) error) error {
	var blocks, size int
	if _, err := fmt.Sscan(order, &blocks, &size); err != nil {
		return asterisque.ErrBadParams.Withf("%q is no order: %v", order, err)
	}
	for range blocks {
		if err := send(strings.Repeat("x", size)); err != nil {
			return err
		}
	}
	return nil
}

// told returns the outcome of a call as text.
func told(result string, err error) (string, error) {
	var abort *asterisque.Abort
	switch {
	case err == nil:
		return result, nil
	case !errors.As(err, &abort):
		return "", err
	case abort.Ran == codec.Refused:
		return fmt.Sprintf("refused %d", abort.Code), nil
	}
	return fmt.Sprintf("failed %d", abort.Code), nil
}
