package asterisque

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/boundlog"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/resume"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
)

// config is the result of the options of a node; it does not change after NewNode.
type config struct {
	sessionConfig

	id         string
	made       string // call site of NewNode in the program
	service    *Service
	accept     func(context.Context, Peer) (*Grant, error)
	credential func(context.Context, Peer) ([]byte, error)
	halfOpen   int
	sessions   int // of the node; 0: any number
	perAddress int
	codecs     []codec.Values
	values     []*values.Codec // of codecs
	tls        *tls.Config
	reusePort  bool // for listening
	// interceptors of calls that the node makes, and that it serves
	around, aroundServed []Interceptor
	expansion            values.Expansion
	maxMessage           int // 0: derived from the limits
	maxPart              int // bytes of the largest part of a message; 0: as the protocol allows
	inbound              limits.Limits
	outbound             limits.Limits
	// whether they were set; other values are derived from these
	set struct{ inbound, outbound, perAddress, noService, noLogger bool }
	// granted to peers
	plan       limits.Plan
	workers    int // 0: derived from the limits
	maxWaiting int

	nodeWorkers int
	budget      int // bytes; 0: any number

	pingInterval time.Duration
	pingTimeout  time.Duration
	writeTimeout time.Duration
	repository   Repository
	elsewhere    func(context.Context, SessionRecord, Peer) (wire.Wire, error) // nil: nowhere

	plainCredentials bool

	remember    time.Duration
	remembered  limits.Amount
	memoryShare float64

	highest   priority.Priority
	stall     time.Duration
	handshake time.Duration

	asks struct{ accept, credential, elsewhere callback.Query } // how those callbacks are called
}

// complete fills in what no option has set.
func (c *config) complete() {
	if c.service == nil {
		c.service = NewService()
	}
	if c.repository == nil {
		c.repository = NewRepository()
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.pingTimeout == 0 {
		c.pingTimeout = carrier.DefaultTimeout
		if c.pingInterval > 0 {
			// a Ping that is too short is named alone
			c.pingTimeout = max(3*c.pingInterval, leastTimeout)
		}
	}
	c.log = boundlog.New(c.log, mostLogged)
	c.asks.accept = callback.NewQuery(c.log, "accept", "Admission.HalfOpen", c.halfOpen)
	c.asks.credential = callback.NewQuery(c.log, "credential", "Access.Credential", callback.DefaultCalls)
	c.asks.elsewhere = callback.NewQuery(c.log, "elsewhere", "Resume.Elsewhere", callback.DefaultCalls)
}

// mostLogged is the number of bytes of a text that are logged.
const mostLogged = 1 << 10

// Minimum durations of options. A shorter value is a number without a unit, which a timer takes for
// nanoseconds, and which would busy a core.
const (
	leastTimeout = 10 * time.Millisecond // for a peer
	leastWait    = time.Millisecond      // for waits of this side
)

// Defaults, reduced to the limits that are set.
const (
	defaultMessage = 4 << 20
	defaultRoom    = 32 << 20
	defaultWorkers = 1024
	leastMessage   = 1 << 10
)

// begin prepares the state that the sessions of a node share.
func (c *config) begin(sh *sharedState) {
	sh.Born = time.Now()
	sh.carriers = carrier.Settings{
		Log: c.log, PingInterval: c.pingInterval, PingTimeout: c.pingTimeout, WriteTimeout: c.writeTimeout,
		Stall: c.stall, ResumeFor: c.resumeFor, Now: sh.Now, Keepalive: &sh.keepalive,
		MaxPart: c.maxPart,
	}
	sh.records = repositoryRecords{
		node: c.id, repository: c.repository, patience: c.handshake, log: c.log,
		queries: callback.NewQuery(c.log, "repository", "Resume.Records", callback.DefaultCalls),
	}
	sh.suspended.Init(
		resume.Amount{Sessions: (c.sessions + 3) / 4, Bytes: c.budget / 4},
		resume.Amount{Sessions: c.perAddress, Bytes: c.budget / 8})
	sh.reports.Log = c.log
	sh.Handle = handle
	if len(c.around) > 0 {
		sh.outward = chain(c.around, carryOut)
	}
	if len(c.aroundServed) > 0 {
		sh.inward, sh.Intercepted = chain(c.aroundServed, handleWithin), true
	}
	sh.Owners.Init(c.budget)
	sh.scheduler.Init(dispatch.SchedulerConfig{Workers: c.nodeWorkers, Waiting: c.maxWaiting, Nested: c.nestedReserve(), Owners: &sh.Owners})
	sh.Durable.Init(idempotency.Plan{
		Lifetime: c.remember, Most: c.remembered, Share: c.memoryShare, Running: c.plan.Workers, Workers: c.nodeWorkers,
	}, &sh.Owners)
}

// Slots returns how many nested calls the node runs for all peers: twice the number of one
// peer.
func (c *config) nestedReserve() int64 {
	workers := c.plan.Workers
	if c.nodeWorkers > 0 {
		workers = c.nodeWorkers
	}
	return 2 * int64(limits.NestedCalls(workers))
}

// limitsFor returns the default limits for messages of a size: at least eight of them fit.
func limitsFor(maxMessage int) limits.Limits {
	soft := limits.Amount{Bytes: min(max(defaultRoom, 8*maxMessage), limits.MaxBytes/4)}
	soft.Messages = min(soft.Bytes/limits.LeastOverhead, limits.MaxMessages/4)
	return limits.Limits{
		Soft: soft, Low: limits.Amount{Messages: soft.Messages / 2, Bytes: soft.Bytes / 2},
		Hard: limits.Amount{Messages: 4 * soft.Messages, Bytes: 4 * soft.Bytes},
	}
}

// announcement returns the configuration of handshakes.
func (c *config) announcement() handshake.Config {
	names := make([]string, len(c.values))
	for i, v := range c.values {
		names[i] = v.Values.Name()
	}
	return handshake.Config{
		ID: c.id, Codecs: names, Plan: &c.plan, PingInterval: c.pingInterval, PingTimeout: c.pingTimeout,
		Windowless: c.windowless, Time: c.handshake, Resumes: c.resumeFor > 0, PlainCredentials: c.plainCredentials,
	}
}

// valuesNamed returns the value codec with a name, on which a handshake has agreed.
func (c *config) valuesNamed(name string) *values.Codec {
	return c.values[slices.IndexFunc(c.values, func(v *values.Codec) bool { return v.Values.Name() == name })]
}

// door returns the bounds for connecting peers.
func (c *config) door() admission.Limits {
	return admission.Limits{
		HalfOpen: c.halfOpen, Sessions: c.sessions, PerAddress: c.perAddress, Everywhere: c.set.perAddress,
		Resumable: c.resumeFor > 0, Time: c.handshake,
	}
}

// planFor returns the budgets that a peer is granted with such inbound limits.
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
	if c.windowless { // no grants
		return limits.Plan{Room: bytes, Largest: maxMessage, Workers: workers, NestedCalls: limits.NestedCalls(workers)}, nil
	}
	if p, err = limits.NewPlan(soft, maxMessage, workers); err != nil {
		return p, fmt.Errorf("Limits.MaxMessage, Workers.Session and Limits.Inbound do not fit each other: %w", err)
	}
	return p, nil
}
