package main

import (
	"fmt"
	"slices"
)

// workload is one kind of work.
type workload struct {
	name     string
	callers  []int                     // or streams, sessions, pipes: one cell for each number
	headline func(*row) figure         // its main figure
	unit     string                    // of headline
	less     bool                      // a smaller figure is better
	can      func(i *impl, n int) bool // reports whether i supports it with n callers
	run      func(r *cellRun) (failure error)
	path     *pathSpec // between both ends; nil is the loopback interface
}

func opsPerS(r *row) figure  { return r.OpsPerS }
func mbPerS(r *row) figure   { return r.MBPerS }
func p50(r *row) figure      { return r.P50 }
func p99(r *row) figure      { return r.P99 }
func memBytes(r *row) figure { return r.MemBytes }

// Sizes of several workloads.
const (
	small     = 64
	bulkWrite = 64 << 10
)

// workloads returns all kinds of work, in the order of the tables.
func workloads() []*workload { return append(loopbackWorkloads(), pathWorkloads()...) }

// loopbackWorkloads returns those without a path.
func loopbackWorkloads() []*workload {
	canCall := (*impl).calls
	canCallOnce := func(i *impl, _ int) bool { return i.calls(1) }
	canStruct := func(i *impl, _ int) bool { _, ok := i.link.(structCaller); return ok }
	canCallBack := func(i *impl, _ int) bool { _, ok := i.link.(backCaller); return ok }
	return []*workload{
		{name: "call-64B", callers: []int{1, 8, 64, 1024}, headline: opsPerS, unit: "calls/s", can: canCall, run: calls(small)},
		{name: "call-4KiB", callers: []int{64}, headline: opsPerS, unit: "calls/s", can: canCall, run: calls(4 << 10)},
		{name: "call-64KiB", callers: []int{64}, headline: opsPerS, unit: "calls/s", can: canCall, run: calls(64 << 10)},
		{name: "call-struct", callers: []int{64}, headline: opsPerS, unit: "calls/s", can: canStruct, run: structCalls},
		{name: "sessions-64B", callers: []int{100, 1000}, headline: opsPerS, unit: "calls/s", can: canCallOnce, run: sessionCalls},
		{name: "msg-1KiB", callers: []int{1}, headline: opsPerS, unit: "messages/s", can: canStream(messages), run: streams(messages, 1<<10)},
		{name: "bulk-1", callers: []int{1}, headline: mbPerS, unit: "MB/s", can: canStream(bulk), run: streams(bulk, bulkWrite)},
		{name: "bulk-100", callers: []int{100}, headline: mbPerS, unit: "MB/s", can: canStream(bulk), run: streams(bulk, bulkWrite)},
		{name: "urgent", callers: []int{1}, headline: p99, unit: "µs, p99", less: true, can: canCallBeside(background), run: urgent},
		{name: "stuck-reader", callers: []int{1}, headline: p99, unit: "µs, p99", less: true, can: canCallBeside(stuck), run: stuckReader},
		{name: "idle-sessions", callers: []int{1000}, headline: memBytes, unit: "B/session", less: true, can: canCallOnce, run: idleSessions},
		{name: "idle-pipes", callers: []int{10_000}, headline: memBytes, unit: "B/pipe", less: true, can: canStream(idle), run: idlePipes},
		{name: "connect", callers: []int{1}, headline: opsPerS, unit: "connections/s", can: canCall, run: connections},
		{name: "both-ways", callers: []int{1024}, headline: opsPerS, unit: "calls/s", can: canCallBack, run: bothWays},
	}
}

func canStream(kind streamKind) func(*impl, int) bool {
	return func(i *impl, n int) bool { return i.has(kind, n) }
}

func canCallBeside(kind streamKind) func(*impl, int) bool {
	return func(i *impl, n int) bool { return i.calls(n) && i.has(kind, 1) && i.streams != 1 }
}

// cell is one workload by one implementation with a number of callers.
type cell struct {
	workload *workload
	callers  int
	impl     *impl
}

// String returns its name for -cell.
func (c cell) String() string {
	return fmt.Sprintf("%s/%d/%s", c.workload.name, c.callers, c.impl.name)
}

// cells returns the cells that chosen selects, in the order of the table; the implementations of
// one workload with the same number of callers are neighbours.
func cells(impls []*impl, chosen func(w *workload, callers int, i *impl) bool) []cell {
	var list []cell
	for _, w := range workloads() {
		for _, n := range w.callers {
			for _, i := range impls {
				if chosen(w, n, i) && i.fits(w) && w.can(i, n) && !slices.Contains(i.without, w.name) {
					list = append(list, cell{w, n, i})
				}
			}
		}
	}
	return list
}

// findCell returns the cell with a name.
func findCell(name string, impls []*impl) (cell, error) {
	for _, c := range cells(impls, func(*workload, int, *impl) bool { return true }) {
		if c.String() == name {
			return c, nil
		}
	}
	return cell{}, fmt.Errorf("-cell %s: there is no such cell; one is, for example, call-64B/1/asterisque", name)
}
