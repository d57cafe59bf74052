package asterisque

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// config is what the options of a node fill in; it does not change after NewNode.
type config struct {
	id         string
	place      string // of NewNode, in the program
	service    *Service
	accept     func(context.Context, Peer) (*Grant, error)
	onSession  func(*Session)
	credential func(context.Context, Peer) ([]byte, error)
	halfOpen   int
	sessions   int // of the node; 0: any number
	perAddress int
	log        *slog.Logger
	codecs     []codec.Values
	values     []*valueCodec // of codecs
	tls        *tls.Config
	expansion  expansion
	maxMessage int  // 0: as there is room for
	window     int  // bytes of the largest window
	windowless bool // there are none
	inbound    limits.Limits
	outbound   limits.Limits
	// whether they were set; others follow from them
	set struct{ message, workers, inbound, outbound, perAddress, noService, noLogger bool }
	// what peers are promised
	plan       limits.Plan
	onState    func(*Session, Direction, limits.State)
	onDrop     func(*Session, Drop)
	workers    int // 0: as there is room for
	maxWaiting int
	windows    map[uint16]int
	tracer     Tracer

	nodeWorkers int
	budget      int // bytes; 0: any number

	pingInterval time.Duration
	pingTimeout  time.Duration
	writeTimeout time.Duration
	resumeFor    time.Duration
	repository   Repository

	private             bool // errors of handlers stay on this side
	plainCredentials    bool
	outliveCertificates bool

	remember    time.Duration
	remembered  limits.Amount
	memoryShare float64

	share     float64
	highest   priority.Priority
	stall     time.Duration
	handshake time.Duration

	asks struct{ accept, credential, repository question } // how those callbacks are called
}

func newConfig(opts []Option) (config, error) {
	c := config{
		place:      here(),
		log:        slog.New(slog.DiscardHandler),
		codecs:     []codec.Values{codec.CBOR, codec.JSON, codec.Raw},
		expansion:  expansion{times: 32, plus: 64 << 10},
		window:     1 << 20,
		halfOpen:   1024,
		sessions:   100_000,
		share:      0.05,
		perAddress: 10_000,
		highest:    priority.Max,
		stall:      time.Minute,
		handshake:  5 * time.Second,

		pingInterval: 15 * time.Second,
		pingTimeout:  defaultTimeout,
		writeTimeout: 5 * time.Minute,
		budget:       defaultBudget(),
		remember:     5 * time.Minute,
		remembered:   limits.Amount{Messages: 64 << 10, Bytes: 64 << 20},
		memoryShare:  1. / ownersWithin,
	}
	for _, o := range opts {
		o(&c)
	}
	if c.service == nil {
		c.service = NewService()
	}
	if c.repository == nil {
		c.repository = NewRepository()
	}
	if c.log == nil {
		c.log, c.set.noLogger = slog.New(slog.DiscardHandler), true
	}
	c.log = bounded(c.log)
	c.asks.accept = newQuestion(c.log, "accept", "WithHalfOpen", c.halfOpen)
	c.asks.credential = newQuestion(c.log, "credential", "WithCredential", mostAsked)
	c.asks.repository = newQuestion(c.log, "repository", "WithRepository", mostAsked)
	return c, c.check()
}

// check fills in what follows from other settings, and returns an error that names the option whose
// value does not fit.
func (c *config) check() (err error) {
	switch {
	case len(c.id) > message.MaxNode:
		return fmt.Errorf("asterisque: WithID: %d bytes exceed the limit of %d", len(c.id), message.MaxNode)
	case c.set.noService:
		return errors.New("asterisque: WithService: the Service is nil: leave the option out to offer nothing")
	case c.set.noLogger:
		return errors.New("asterisque: WithLogger: the logger is nil: leave the option out to log nothing")
	case len(c.codecs) == 0 || len(c.codecs) > message.MaxCodecs:
		return fmt.Errorf("asterisque: WithCodecs: %d codecs are outside 1..%d", len(c.codecs), message.MaxCodecs)
	case c.set.message && (c.maxMessage < leastMessage || c.maxMessage > 1<<30):
		return fmt.Errorf("asterisque: WithMaxMessage: %d bytes are outside 1 KiB..1 GiB", c.maxMessage)
	case c.expansion.times < 1:
		return fmt.Errorf("asterisque: WithExpansion: %d times are below 1", c.expansion.times)
	case c.expansion.plus < 0:
		return fmt.Errorf("asterisque: WithExpansion: %d bytes more are negative", c.expansion.plus)
	case c.set.workers && c.workers < 1:
		return fmt.Errorf("asterisque: WithWorkers: %d is below 1", c.workers)
	case c.nodeWorkers < 0:
		return fmt.Errorf("asterisque: WithNodeWorkers: %d is negative", c.nodeWorkers)
	case c.budget < 0:
		return fmt.Errorf("asterisque: WithNodeBudget: %d is negative", c.budget)
	case c.maxWaiting < 0:
		return fmt.Errorf("asterisque: WithMaxWaiting: %d is negative", c.maxWaiting)
	case !(c.share >= 0 && c.share <= 0.5):
		return fmt.Errorf("asterisque: WithLowerShare: %v is outside 0..0.5", c.share)
	case c.halfOpen < 0:
		return fmt.Errorf("asterisque: WithHalfOpen: %d is negative", c.halfOpen)
	case c.sessions < 0:
		return fmt.Errorf("asterisque: WithSessions: %d is negative", c.sessions)
	case c.perAddress < 0:
		return fmt.Errorf("asterisque: WithSessionsPerAddress: %d is negative", c.perAddress)
	case c.window < 0:
		return fmt.Errorf("asterisque: WithWindow: %d is negative", c.window)
	case uint64(c.window) > piping.MaxWindow:
		return fmt.Errorf("asterisque: WithWindow: %d is above %d", c.window, uint32(piping.MaxWindow))
	case c.stall <= 0:
		return fmt.Errorf("asterisque: WithStallTimeout: %v is not positive", c.stall)
	case c.pingInterval < 0 || c.pingInterval > 0 && c.pingTimeout < 2*c.pingInterval:
		return fmt.Errorf("asterisque: WithPing: an interval of %v needs a timeout of at least twice that, not %v", c.pingInterval, c.pingTimeout)
	case c.writeTimeout <= 0:
		return fmt.Errorf("asterisque: WithWriteTimeout: %v is not positive", c.writeTimeout)
	case c.remember <= 0:
		return fmt.Errorf("asterisque: WithMemory: %v is not positive", c.remember)
	case !(c.memoryShare > 0 && c.memoryShare <= 1):
		return fmt.Errorf("asterisque: WithMemoryShare: %v is outside 0..1", c.memoryShare)
	case c.resumeFor < 0:
		return fmt.Errorf("asterisque: WithResume: %v is negative", c.resumeFor)
	case c.handshake <= 0:
		return fmt.Errorf("asterisque: WithHandshakeTimeout: %v is not positive", c.handshake)
	}
	for function, calls := range c.windows {
		if calls < 1 {
			return fmt.Errorf("asterisque: WithCallWindow: %d calls of function %d are below 1", calls, function)
		}
	}
	if err := checkCodecs(c.codecs); err != nil {
		return err
	}
	for _, v := range c.codecs {
		c.values = append(c.values, newValueCodec(v, c.expansion, c.log))
	}
	if c.inbound, err = c.inbound.Check(); err != nil {
		return fmt.Errorf("asterisque: WithInboundLimits: %w", err)
	}
	if c.outbound, err = c.outbound.Check(); err != nil {
		return fmt.Errorf("asterisque: WithOutboundLimits: %w", err)
	}
	return c.fit()
}

// checkCodecs returns an error unless each codec is there and has a name of its own.
func checkCodecs(codecs []codec.Values) error {
	place := make(map[string]int)
	for i, v := range codecs {
		if v == nil {
			return fmt.Errorf("asterisque: WithCodecs: codec %d of %d is nil", i+1, len(codecs))
		}
		if first, ok := place[v.Name()]; ok {
			return fmt.Errorf("asterisque: WithCodecs: the codecs %d and %d have the same name %q: leave one out", first+1, i+1, v.Name())
		}
		place[v.Name()] = i
	}
	return nil
}

// What is there by default, as far as it fits what is set.
const (
	defaultMessage = 4 << 20
	defaultRoom    = 32 << 20
	defaultWorkers = 1024
	leastMessage   = 1 << 10
)

// door returns the bounds for those who connect.
func (c *config) door() doorBounds {
	return doorBounds{
		halfOpen: c.halfOpen, sessions: c.sessions, perAddress: c.perAddress, everywhere: c.set.perAddress,
		resumes: c.resumeFor > 0, time: c.handshake,
	}
}

// nestedReserve returns how many calls within calls the node runs for all peers: for two of them
// what either may have.
func (c *config) nestedReserve() int64 {
	workers := c.plan.Workers
	if c.nodeWorkers > 0 {
		workers = c.nodeWorkers
	}
	return 2 * int64(limits.NestedCalls(workers))
}

// limitsFor returns the default limits for messages of a size: at least eight of them have room.
func limitsFor(maxMessage int) limits.Limits {
	soft := limits.Amount{Bytes: min(max(defaultRoom, 8*maxMessage), limits.MaxBytes/4)}
	soft.Messages = min(soft.Bytes/limits.LeastOverhead, limits.MaxMessages/4)
	return limits.Limits{
		Soft: soft, Resume: limits.Amount{Messages: soft.Messages / 2, Bytes: soft.Bytes / 2},
		Hard: limits.Amount{Messages: 4 * soft.Messages, Bytes: 4 * soft.Bytes},
	}
}

// fit lets what was not set follow from what was, and returns an error that names the options that
// do not fit each other.
func (c *config) fit() (err error) {
	if !c.set.inbound {
		c.inbound = limitsFor(c.maxMessage)
	}
	if !c.set.outbound {
		c.outbound = limitsFor(c.maxMessage)
	}
	c.windowless = c.window == 0
	c.plan, err = c.planFor(c.inbound)
	return err
}

// planFor returns what a peer is promised with such inbound limits.
func (c *config) planFor(inbound limits.Limits) (p limits.Plan, err error) {
	soft, maxMessage, workers := inbound.Soft, c.maxMessage, c.workers
	bytes := soft.Bytes
	if bytes == 0 {
		bytes = max(defaultRoom, 8*maxMessage)
	}
	if maxMessage == 0 {
		maxMessage = defaultMessage
		if !c.windowless {
			maxMessage = max(leastMessage, min(maxMessage, max(bytes, limits.LeastRoom)/8))
		}
	}
	if workers == 0 {
		workers = defaultWorkers
		if !c.windowless {
			messages := soft.Messages
			if messages == 0 {
				messages = bytes / limits.LeastOverhead
			}
			workers = min(workers, limits.MostWorkers(bytes, messages))
		}
	}
	if c.windowless { // nothing is promised
		return limits.Plan{Room: bytes, Largest: maxMessage, Workers: workers, NestedCalls: limits.NestedCalls(workers)}, nil
	}
	if p, err = limits.NewPlan(soft, maxMessage, workers); err != nil {
		return p, fmt.Errorf("asterisque: WithMaxMessage, WithWorkers and WithInboundLimits do not fit each other: %w", err)
	}
	return p, nil
}
