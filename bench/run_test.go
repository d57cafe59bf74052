package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// keys are the fields of each JSON object.
var keys = []string{
	"workload", "impl", "callers", "ops_per_s", "mb_per_s", "p50_us", "p99_us", "p999_us", "allocs_per_op", "bytes_per_op", "cpu_us_per_op", "mem_bytes",
}

// Run prints one JSON object for each row.
func TestRun_JSON(t *testing.T) {
	code, stdout, stderr := bench(fakes(), "-json", "-impl", thisLibrary, "-only", "call-4KiB|call-64KiB", "-time", "10ms", "-rounds", "2")
	require.Equal(t, 0, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2)
	for i, want := range []string{"call-4KiB/64", "call-64KiB/64"} {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &object))
		for _, k := range keys {
			require.Contains(t, object, k)
		}
		require.Equal(t, want, object["workload"].(string)+"/"+fmt.Sprint(object["callers"]))
		require.Positive(t, object["ops_per_s"])
		require.Positive(t, object["p99_us"])
		require.Nil(t, object["mem_bytes"], "what was not measured is null")
		require.EqualValues(t, 2, object["rounds"])
		require.NotNil(t, object["spread"])
	}
	require.Contains(t, stderr, "4/4", "progress counts every round")
}

// The table has the failures.
func TestRun_FailureInTable(t *testing.T) {
	code, stdout, stderr := bench(fakes(), "-impl", thisLibrary+"|broken|panics", "-only", "call-4KiB", "-time", "10ms", "-rounds", "1")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "| call-4KiB | 64 | **asterisque** |")
	require.Regexp(t, `\| call-4KiB \| 64 \| broken \|.*\| failed: it broke \|`, stdout)
	require.Regexp(t, `\| call-4KiB \| 64 \| panics \|.*\| failed: it panicked`, stdout)
	require.Contains(t, stderr, "2 of 3 rows failed: call-4KiB/64/broken, call-4KiB/64/panics")
}

// A cell that hangs is killed.
func TestCell_Hangs(t *testing.T) {
	c, err := findCell("call-64B/1/hangs", fakes())
	require.NoError(t, err)
	begin := time.Now()
	r := measureApart(t.Context(), c, time.Millisecond, 500*time.Millisecond)
	require.Contains(t, r.Error, "hung")
	require.GreaterOrEqual(t, time.Since(begin), 500*time.Millisecond, "it had its time")
}

// A connection that does not close is left to the end of the process.
func TestCell_DoesNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, closed := time.Now(), make(chan struct{})
		within(closing, func() { <-closed })
		require.Equal(t, closing, time.Since(begin))
		close(closed)
		within(closing, func() {})
		require.Equal(t, closing, time.Since(begin), "what closes at once is not waited for")
	})
}

// An interrupt ends the run.
func TestRun_Interrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o, err := parseOptions([]string{"-impl", "hangs"}, t.Output())
	require.NoError(t, err)
	require.ErrorContains(t, measureAll(ctx, o, t.Output(), t.Output(), fakes()), "interrupted")
}

// chosen returns the names of the implementations and workloads that args select.
func chosen(t *testing.T, args ...string) (impls, works map[string]bool) {
	o, err := parseOptions(args, t.Output())
	require.NoError(t, err)
	impls, works = map[string]bool{}, map[string]bool{}
	for _, c := range cells(implementations(), o.chooses) {
		impls[c.impl.name], works[c.workload.name] = true, true
	}
	return impls, works
}

func set(names ...string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// -only and -impl choose cells.
func TestOptions_OnlyAndImpl(t *testing.T) {
	floors := []string{"floor-pingpong", "floor-pipelined", "floor-copy", "floor-two-sockets"}
	peers := []string{"grpc", "ttrpc", "drpc", "netrpc", "connect-go", "yamux", "libp2p-yamux", "smux", "quic"}

	impls, works := chosen(t)
	require.Equal(t, set(append(append([]string{thisLibrary}, floors...), peers...)...), impls, "variants of this library are left out")
	require.Len(t, works, len(loopbackWorkloads()), "paths are measured when they are asked for")

	impls, works = chosen(t, "-quick")
	require.Equal(t, set(append([]string{thisLibrary}, floors...)...), impls)
	require.Len(t, works, len(loopbackWorkloads()))

	impls, _ = chosen(t, "-quick", "-impl", "grpc|asterisque")
	require.Equal(t, set("grpc", "asterisque"), impls, "the pattern is for the whole name")

	impls, _ = chosen(t, "-impl", "asterisque.*")
	require.Equal(t, set("asterisque", "asterisque-64MiB", "asterisque-tls", "asterisque-unix", "asterisque-ws", "asterisque-smux", "asterisque-nats", "asterisque-json", "asterisque-msgpack"), impls)

	_, works = chosen(t, "-only", "call-.*")
	require.Equal(t, set("call-64B", "call-4KiB", "call-64KiB", "call-struct"), works)
	impls, works = chosen(t, "-only", "path-.*")
	require.Equal(t, set(thisLibrary, "floor-pingpong", "floor-pipelined", "floor-copy", "floor-two-sockets", "netrpc", "grpc-defaults", "yamux-wide", "smux-wide", "quic-wide"), impls)
	require.Len(t, works, len(pathWorkloads()))
	_, works = chosen(t, "-only", "bulk-1")
	require.Equal(t, set("bulk-1"), works)

	impls, works = chosen(t, "-against", "old")
	require.Equal(t, set(thisLibrary), impls)
	require.Len(t, works, len(loopbackWorkloads()))
	impls, _ = chosen(t, "-against", "old", "-impl", "asterisque-ws|floor-copy")
	require.Equal(t, set("asterisque-ws", "floor-copy"), impls)
}

// -only also matches numbers of callers.
func TestOptions_OnlyCallers(t *testing.T) {
	o, err := parseOptions([]string{"-impl", thisLibrary, "-only", "call-64B/(1|1024)|bulk-1|idle-pipes"}, t.Output())
	require.NoError(t, err)
	var names []string
	for _, c := range cells(implementations(), o.chooses) {
		names = append(names, c.String())
	}
	require.Equal(t, []string{"call-64B/1/asterisque", "call-64B/1024/asterisque", "bulk-1/1/asterisque", "idle-pipes/10000/asterisque"}, names)
}

func TestOptions_Invalid(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-rounds -1", "-rounds -1: it has to be at least 1"},
		{"-time 1ns", "-time 1ns: it has to be at least 1ms"},
		{"-only (", "missing closing )"},
		{"quick", `"quick" is not a flag`},
		{"-guard 6 -json", "-guard measures what it needs"},
		{"-against old -rounds 9", "-rounds 9: with -against it has to be between 10 and 1000"},
		{"-against old -json", "-against prints a table of its own"},
		{"-cpuprofile x", "say which one with -cell"},
		{"-nonsense", "not defined: -nonsense"},
	} {
		code, stdout, stderr := bench(fakes(), strings.Fields(c.args)...)
		require.Equal(t, 2, code, c.args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
	for args, want := range map[string]string{
		"-only nothing":         "there is nothing to measure",
		"-cell call-64B/1":      "there is no such cell; one is, for example, call-64B/1/asterisque",
		"-cell x/1/smux":        "-cell x/1/smux: there is no such cell",
		"-guard 6 -time 1ms -h": "",
	} {
		code, _, stderr := bench(fakes(), strings.Fields(args)...)
		require.Contains(t, stderr, want)
		require.Equal(t, want != "", code == 1, args)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	code, _, stderr := bench(fakes(), "-h")
	require.Equal(t, 0, code)
	for _, f := range []string{"-json", "-only", "-impl", "-quick", "-rounds", "-plot", "-guard", "-against", "-update", "-cell", "-time", "-cpuprofile"} {
		require.Contains(t, stderr, "\n  "+f)
	}
}

// guardWith runs the guard with these figures, three for each attempt: the calls of a bare
// ping-pong, of this library and of bare frames. guardWith returns the output of the guard and the
// number of attempts.
func guardWith(t *testing.T, figures ...figure) (said string, taken int, err error) {
	var stdout strings.Builder
	err = guard(6, func(c cell) row {
		want := []string{"call-64B/1/floor-pingpong", "call-64B/1024/" + thisLibrary, "call-64B/1024/floor-pipelined"}[taken%3]
		require.Equal(t, want, c.String())
		r := newRow(c)
		r.OpsPerS = figures[taken]
		taken++
		return r
	}, &stdout, t.Output(), implementations())
	return stdout.String(), taken, err
}

// The guard takes the best of three tries.
func TestGuard_BestOfThree(t *testing.T) {
	said, taken, err := guardWith(t, 100, 600, 2000)
	require.NoError(t, err)
	require.Equal(t, 3, taken, "one try was enough")
	require.Contains(t, said, "1,024 callers make 6.0 times the calls of a bare ping-pong; 6.0 are asked for")

	_, taken, err = guardWith(t, 100, 599, 2000, 100, 100, 2000, 100, 700, 2000)
	require.NoError(t, err)
	require.Equal(t, 9, taken)

	said, taken, err = guardWith(t, 100, 550, 2000, 100, 500, 2000, 100, 400, 2000)
	require.EqualError(t, err, "1,024 callers make 5.5 times the calls of a bare ping-pong, and should make 6 times as many, or half as many as bare frames of 1,024 callers")
	require.Equal(t, 9, taken)
	require.Empty(t, said)
}

// The guard requires half of the rate of bare frames if that is less.
func TestGuard_BareFrames(t *testing.T) {
	said, _, err := guardWith(t, 100, 250, 500)
	require.NoError(t, err)
	require.Contains(t, said, "2.5 are asked for")

	_, _, err = guardWith(t, 100, 249, 500, 100, 249, 500, 100, 249, 500)
	require.Error(t, err)
}

// The guard measures in separate processes.
func TestGuard_Processes(t *testing.T) {
	code, stdout, stderr := bench(fakes(), "-guard", "6", "-time", "50ms")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "are asked for")

	code, _, stderr = bench(fakes()[:1], "-guard", "6", "-time", "50ms")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "call-64B/1/floor-pingpong: there is no such cell")
}
