// Package flowtest has scenarios of honest programs that must never stand still, for every kind of
// Wire.
//
// A scenario counts finished jobs, and asserts nothing about time. It fails only if it has not
// ended after two minutes, and then reports its progress and the resources of both sessions.
package flowtest

import (
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

// landed reports that a session grants no more than its room. Without that, the scenarios stand
// still and are skipped.
const landed = true

// Extent selects the scenarios to run. Each Extent includes those before it.
type Extent int

const (
	Brief Extent = iota // a scenario for each rule, for each kind of Wire
	Soak                // everything
)

// Run runs the scenarios over wires.
func Run(t *testing.T, wires Kind, how Extent) { run(t, scenarioPlay{wires: wires}, how) }

// RunCut runs the scenarios with sessions that are resumed, and cuts their wires repeatedly.
func RunCut(t *testing.T, wires Kind, how Extent) { run(t, scenarioPlay{wires: wires, cut: true}, how) }

func run(t *testing.T, p scenarioPlay, how Extent) {
	for _, s := range scenarios() {
		if s.extent > how || s.steady && p.cut {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if !landed {
				t.Skip("a session still promises more than it has room for")
			}
			leak.Check(t)
			s.run(scenarioPlay{t, p.wires, p.cut})
		})
	}
}

// scenarioPlay is the environment of a scenario.
type scenarioPlay struct {
	testing.TB
	wires Kind
	cut   bool // sessions are resumed, and their wires cut
}

// scenario is one program.
type scenario struct {
	name   string
	extent Extent // the smallest Extent that includes it
	steady bool   // its wires must not be cut
	run    func(scenarioPlay)
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

func scenarios() []scenario {
	return []scenario{
		{name: "uploads, brief", extent: Brief, run: uploads(64, 400, 128*kib)},
		{name: "uploads, 1 worker, brief", extent: Soak, run: uploads(1, 400, 128*kib)},
		{name: "uploads, 64 workers", extent: Soak, run: uploads(64, 400, mib)},
		{name: "uploads, 8 workers", extent: Soak, run: uploads(8, 400, mib)},
		{name: "uploads, 1 worker", extent: Soak, run: uploads(1, 400, mib)},
		{name: "uploads from both sides, brief", extent: Soak, run: uploadsFromBoth(64, 500, 128*kib)},
		{name: "uploads from both sides", extent: Soak, run: uploadsFromBoth(64, 1000, mib)},

		{name: "300 sleepers", extent: Brief, run: sleeping(300, 16*kib)},
		{name: "8 sleepers with large Blocks", extent: Brief, run: sleeping(8, 4*mib-100)},
		{name: "300 sleepers, half of them cancelled", extent: Brief, run: halfCancelled(300, 16*kib)},
		{name: "slow readers, brief", extent: Soak, run: slowReaders(400)},
		{name: "slow readers", extent: Soak, run: slowReaders(2000)},

		{name: "parameters, 64 workers, 400 of 64 KiB", extent: Brief, run: parameters(64, 400, 64*kib)},
		{name: "parameters, 64 workers, 2,000 of 16 KiB", extent: Soak, run: parameters(64, 2000, 16*kib)},
		{name: "parameters, 256 workers, 1,500 of 16 KiB", extent: Soak, run: parameters(256, 1500, 16*kib)},
		{name: "parameters, 1,024 workers, 2,600 of 12 KiB", extent: Soak, run: parameters(1024, 2600, 12*kib)},
		{name: "parameters, 1,024 workers, 5,200 of 6 KiB", extent: Soak, run: parameters(1024, 5200, 6*kib)},

		{name: "chains, 1 worker", extent: Brief, run: chains(1, 4, 8)},
		{name: "chains, 4 workers", extent: Brief, run: chains(4, 16, 8)},
		{name: "chains, 64 workers", extent: Soak, run: chains(64, 256, 8)},
		// the nested calls of all chains fit their room: 8,191 of each side
		{name: "chains, 1,024 workers", extent: Soak, run: chains(1024, 1024, 8)},
		{name: "chains, 1 worker, 60 deep", extent: Brief, run: chains(1, 4, 60)},
		{name: "chains that are too deep", extent: Brief, run: chainsTooDeep},

		{name: "large results, brief", extent: Brief, run: resultCalls{calls: 1024, size: 60 * kib}.run},
		{name: "large results, 16 of 4 MB", extent: Soak, run: resultCalls{calls: 16, size: 4_000_000, takes: 100, link: 100 * mib}.run},
		{name: "large results, 40 of 4 MB", extent: Soak, run: resultCalls{calls: 40, size: 4_000_000, takes: 100, link: 100 * mib}.run},
		{name: "large results, 1,024 of 60 KiB", extent: Soak, run: resultCalls{calls: 1024, size: 60 * kib, takes: 300, link: 50_000_000}.run},
		{name: "large results, 400 of 100 KiB", extent: Soak, run: resultCalls{calls: 400, size: 100 * kib, takes: 300, link: 50_000_000}.run},
		{name: "large results, 1,024 of 100 KiB", extent: Soak, run: resultCalls{calls: 1024, size: 100 * kib, takes: 300, link: 50_000_000}.run},
		{name: "large results, 200 of 512 KiB", extent: Soak, run: resultCalls{calls: 200, size: 512 * kib, takes: 300, link: 50_000_000}.run},
		{name: "large results, 64 of 1 MiB", extent: Soak, run: resultCalls{calls: 64, size: mib, takes: 300, link: 50_000_000}.run},
		{name: "large results of durable calls after a cut, brief", extent: Soak, run: durableResults(400, 100*kib, 50_000_000)},
		{name: "large results of durable calls after a cut", extent: Soak, run: durableResults(1000, 100*kib, 50_000_000)},

		{name: "one large message, brief", extent: Soak, steady: true, run: largeMessage(40 * mib)},
		{name: "one large message", extent: Soak, steady: true, run: largeMessage(100 * mib)},
		{name: "messages larger than the outbound limits", extent: Brief, steady: true, run: largerThanLimits},

		{name: "shutdown, brief", extent: Soak, steady: true, run: shutdowns(1)},
		{name: "shutdown", extent: Soak, steady: true, run: shutdowns(50)},
	}
}
