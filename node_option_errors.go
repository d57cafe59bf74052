package asterisque

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/values"
)

// optionErrors are the errors of invalid options, each of which begins with the name of its option.
type optionErrors []error

// unless records an error if fits is false. It returns fits.
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
