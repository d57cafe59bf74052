package main

import (
	"fmt"
	"time"
)

// pathWorkloads returns the kinds of work through a link.
func pathWorkloads() []*workload {
	const ms = time.Millisecond
	streams := func(name string, rtt time.Duration, rate, callers, size int, times time.Duration) *workload {
		return &workload{
			name: name + pathName(rtt, rate), callers: []int{callers}, headline: mbPerS, unit: "MB/s",
			can: canStream(bulk), run: pathStreams(size, times), path: &pathSpec{roundTrip: rtt, rate: rate},
		}
	}
	stream := func(rtt time.Duration, rate int) *workload {
		return streams("path-stream-", rtt, rate, 1, bulkWrite, 1)
	}
	slow := pathSpec{roundTrip: 50 * ms, rate: 10 * mbit}
	urgent := func(name string, kind streamKind, size int, times float64, path pathSpec) *workload {
		return &workload{
			name: "path-urgent-" + name, callers: []int{1}, headline: p99, unit: "µs, p99", less: true,
			can: canCallBeside(background), run: pathUrgent(kind, size, times), path: &path,
		}
	}
	changing := slow
	changing.halved = 5 * time.Second
	return []*workload{
		stream(50*ms, 1000*mbit),
		stream(50*ms, 100*mbit),
		stream(50*ms, 10*mbit),
		stream(10*ms, 100*mbit),
		stream(200*ms, 100*mbit),
		stream(50*ms, 0),
		streams("path-streams-", 50*ms, 100*mbit, 100, 4<<10, 4),
		urgent("bulk", background, bulkWrite, 1.25, slow),
		urgent("4MiB", large, 4<<20, 1.25, slow),
		urgent("64MiB", large, 64<<20, 1.25, slow),
		urgent("changing", background, bulkWrite, 5, changing),
		{
			name: "path-first-" + pathName(50*ms, 100*mbit), callers: []int{1}, headline: p50, unit: "µs, p50", less: true,
			can: canAsk, run: pathFirst(16 << 10), path: &pathSpec{roundTrip: 50 * ms, rate: 100 * mbit},
		},
		{
			name: "path-call-64B-" + pathName(50*ms, 1000*mbit), callers: []int{64}, headline: opsPerS, unit: "calls/s",
			can: (*impl).calls, run: pathCalls(small), path: &pathSpec{roundTrip: 50 * ms, rate: 1000 * mbit},
		},
	}
}

// pathName returns the name of a path.
func pathName(rtt time.Duration, rate int) string {
	switch {
	case rate == 0:
		return fmt.Sprintf("%v-unlimited", rtt)
	case rate >= 1000*mbit:
		return fmt.Sprintf("%v-%dGbit", rtt, rate/(1000*mbit))
	}
	return fmt.Sprintf("%v-%dMbit", rtt, rate/mbit)
}

func canAsk(i *impl, _ int) bool {
	_, ok := i.link.(asker)
	return ok
}
