package asterisque

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/boundlog"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/piping"
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
	plan       flow.Plan
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

	announced handshake.Config // for handshakes; set by announce

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

// nestedReserve returns how many nested calls the node runs for all peers: twice the number of one
// peer.
func (c *config) nestedReserve() int64 {
	workers := c.plan.Workers
	if c.nodeWorkers > 0 {
		workers = c.nodeWorkers
	}
	return 2 * int64(flow.NestedCalls(workers))
}

// limitsFor returns the default limits for messages of a size: at least eight of them fit.
func limitsFor(maxMessage int) limits.Limits {
	soft := limits.Amount{Bytes: min(max(defaultRoom, 8*maxMessage), limits.MaxBytes/4)}
	soft.Messages = min(soft.Bytes/flow.LeastOverhead, limits.MaxMessages/4)
	return limits.Limits{
		Soft: soft, Low: limits.Amount{Messages: soft.Messages / 2, Bytes: soft.Bytes / 2},
		Hard: limits.Amount{Messages: 4 * soft.Messages, Bytes: 4 * soft.Bytes},
	}
}

// announce prepares the configuration of handshakes. c is not copied afterwards.
func (c *config) announce() {
	names := make([]string, len(c.values))
	for i, v := range c.values {
		names[i] = v.Values.Name()
	}
	c.announced = handshake.Config{
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
func (c *config) planFor(inbound limits.Limits) (p flow.Plan, err error) {
	soft, maxMessage, workers := inbound.Soft, c.maxMessage, c.workers
	bytes := soft.Bytes
	if bytes == 0 {
		bytes = max(defaultRoom, 8*maxMessage)
	}
	if maxMessage == 0 {
		maxMessage = defaultMessage
		if !c.windowless {
			maxMessage = max(leastMessage, min(maxMessage, max(bytes, flow.LeastRoom)/8))
		}
	}
	if workers == 0 {
		workers = defaultWorkers
		if !c.windowless {
			messages := soft.Messages
			if messages == 0 {
				messages = bytes / flow.LeastOverhead
			}
			workers = min(workers, flow.MostWorkers(bytes, messages))
		}
	}
	if c.windowless { // no grants
		return flow.Plan{Room: bytes, Largest: maxMessage, Workers: workers, NestedCalls: flow.NestedCalls(workers)}, nil
	}
	if p, err = flow.NewPlan(soft, maxMessage, workers); err != nil {
		return p, fmt.Errorf("Limits.MaxMessage, Workers.Session and Limits.Inbound do not fit each other: %w", err)
	}
	return p, nil
}

// optionErrors are the errors of invalid options, each of which begins with the name of its option.
type optionErrors []error

// require records an error if fits is false. It returns fits.
func (m *optionErrors) require(fits bool, format string, args ...any) bool {
	if !fits {
		m.add(fmt.Errorf(format, args...))
	}
	return fits
}

func (m *optionErrors) add(err error) { *m = append(*m, err) }

// asError returns m as one error, or nil if every option is valid.
func (m optionErrors) asError() error {
	if len(m) == 0 {
		return nil
	}
	return &optionsError{m}
}

// optionsError names every invalid option of a node.
type optionsError struct{ options optionErrors }

func (e *optionsError) Error() string {
	texts := make([]string, len(e.options))
	for i, m := range e.options {
		texts[i] = m.Error()
	}
	return "asterisque: " + strings.Join(texts, "; ")
}

func (e *optionsError) Unwrap() []error { return e.options }

// check records every invalid option, and derives the values that depend on other ones.
func (c *config) check(m *optionErrors) {
	m.require(len(c.id) <= message.MaxNode, "WithID: %d bytes exceed the limit of %d", len(c.id), message.MaxNode)
	m.require(!c.set.noService, "WithService: the Service is nil: leave the option out to offer nothing")
	m.require(!c.set.noLogger, "WithLogger: the logger is nil: leave the option out to log nothing")
	c.checkInterceptors(m)
	c.checkCodecs(m)
	for _, function := range slices.Sorted(maps.Keys(c.windows)) {
		calls := c.windows[function]
		m.require(calls >= 1, "WithMaxOutstanding: %d calls of function %d are below 1", calls, function)
	}
	c.checkTimes(m)
	m.require(c.share >= 0 && c.share <= 0.5, "Priorities.LowerShare: %v is above 0.5, or no number", c.share)
	m.require(c.memoryShare > 0 && c.memoryShare <= 1, "DurableAnswers.Share: %v is outside 0..1", c.memoryShare)
	c.checkLimits(m)
}

// checkInterceptors records each interceptor that is nil.
func (c *config) checkInterceptors(m *optionErrors) {
	for i, f := range c.around {
		m.require(f != nil, "WithOutboundInterceptors: interceptor %d of %d is nil: leave it out", i+1, len(c.around))
	}
	for i, f := range c.aroundServed {
		m.require(f != nil, "WithInboundInterceptors: interceptor %d of %d is nil: leave it out", i+1, len(c.aroundServed))
	}
}

// checkTimes records each invalid duration.
func (c *config) checkTimes(m *optionErrors) {
	for _, t := range []struct {
		name         string
		value, least time.Duration
		none         bool // 0 is valid and disables it
	}{
		{"Timeouts.Handshake", c.handshake, leastTimeout, false}, {"Timeouts.Ping", c.pingInterval, leastTimeout, true},
		{"Timeouts.Silence", c.pingTimeout, leastTimeout, false}, {"Timeouts.Write", c.writeTimeout, leastTimeout, false},
		{"Timeouts.Stall", c.stall, leastTimeout, false}, {"Timeouts.Drain", c.drain, leastWait, true},
		{"Resume.For", c.resumeFor, leastWait, true}, {"DurableAnswers.For", c.remember, leastWait, false},
	} {
		if m.require(t.value > 0 || t.none, "%s: %v is not positive", t.name, t.value) && t.value > 0 {
			m.atLeast(t.name, t.value, t.least)
		}
	}
	if c.pingInterval > 0 && c.pingTimeout > 0 {
		m.require(c.pingTimeout/2 >= c.pingInterval,
			"Timeouts.Silence: a Ping after %v needs a Silence of at least twice that, not %v", c.pingInterval, c.pingTimeout)
	}
}

// atLeast records an error if d, which is positive, is below least.
func (m *optionErrors) atLeast(name string, d, least time.Duration) {
	unit := ""
	switch {
	case d < time.Microsecond:
		unit = fmt.Sprintf(": did you mean %d * time.Second?", d)
	case d < time.Millisecond:
		unit = fmt.Sprintf(": did you mean %d * time.Millisecond?", d)
	}
	m.require(d >= least, "%s is %v, less than %v%s", name, d, least, unit)
}

// checkLimits records each invalid limit. If each is valid alone, it checks their combination.
func (c *config) checkLimits(m *optionErrors) {
	before := len(*m)
	m.require(c.workers >= 0, "Workers.Session: %d is below 1", c.workers)
	m.require(c.maxMessage == 0 || c.maxMessage >= leastMessage && c.maxMessage <= 1<<30,
		"Limits.MaxMessage: %d bytes are outside 1 KiB..1 GiB", c.maxMessage)
	m.require(c.expansion.Times >= 1, "Limits.Expansion: %d times are below 1", c.expansion.Times)
	m.require(uint64(c.window) <= piping.MaxWindow, "Limits.Window: %d is above %d", c.window, uint32(piping.MaxWindow))
	var err error
	if c.inbound, err = c.inbound.Check(); err != nil {
		m.add(fmt.Errorf("Limits.Inbound: %w", err))
	}
	if c.outbound, err = c.outbound.Check(); err != nil {
		m.add(fmt.Errorf("Limits.Outbound: %w", err))
	}
	if len(*m) == before {
		c.fit(m)
	}
}

// checkCodecs records each codec that is missing or has the name of an earlier one, and converts
// the remaining ones for the sessions.
func (c *config) checkCodecs(m *optionErrors) {
	n := len(c.codecs)
	m.require(n > 0 && n <= message.MaxCodecs, "WithCodecs: %d codecs are outside 1..%d", n, message.MaxCodecs)
	place := make(map[string]int)
	for i, v := range c.codecs {
		if !m.require(v != nil, "WithCodecs: codec %d of %d is nil", i+1, n) {
			continue
		}
		if first, ok := place[v.Name()]; ok {
			m.add(fmt.Errorf("WithCodecs: the codecs %d and %d have the same name %q: leave one out", first+1, i+1, v.Name()))
			continue
		}
		place[v.Name()] = i
		c.values = append(c.values, values.NewCodec(v, c.expansion, c.log))
	}
}

// fit derives the limits that were not set from those that were, and records conflicts.
func (c *config) fit(m *optionErrors) {
	if !c.set.inbound {
		c.inbound = limitsFor(c.maxMessage)
	}
	if !c.set.outbound {
		c.outbound = limitsFor(c.maxMessage)
	}
	c.windowless = c.window == 0
	var err error
	if c.plan, err = c.planFor(c.inbound); err != nil {
		m.add(err)
	}
}

// over returns the configuration of a session over w.
func (c *config) over(w wire.Wire) *config {
	if _, ok := w.(wire.Foreign); !ok {
		return c
	}
	own := *c
	own.windowless = true
	own.plan, _ = own.planFor(own.inbound) // without windows every limit is valid
	own.announce()
	return &own
}
