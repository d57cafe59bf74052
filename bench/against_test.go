package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// canned writes a program in the place of a build of this command: it answers -cell with the canned
// answer for the cell, and records each call in a file beside itself. It returns the program's
// file.
func canned(t *testing.T, folder, name string, answers map[string]string) string {
	if runtime.GOOS == "windows" {
		t.Skip("the programs that stand for the builds are shell scripts")
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n[ $# = 4 ] && [ $1 = -cell ] && [ $3 = -time ] || exit 2\n")
	fmt.Fprintf(&b, "echo %s $2 >>'%s/calls'\ncase $2 in\n", name, folder)
	for cell, answer := range answers {
		fmt.Fprintf(&b, "%s) %s ;;\n", cell, answer)
	}
	b.WriteString("*) echo 'bench: there is no such cell' >&2; exit 1 ;;\nesac\n")
	file := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o700))
	return file
}

// fought is the outcome of a comparison of two builds with fixed figures.
type fought struct {
	table, progress string
	calls           []string
	err             error
}

func fight(t *testing.T, rounds int, names []string, old, new map[string]string) (f fought) {
	folder := t.TempDir()
	var list []cell
	for _, n := range names {
		c, err := findCell(n, implementations())
		require.NoError(t, err)
		list = append(list, c)
	}
	var stdout, stderr strings.Builder
	d := duel{
		old: canned(t, folder, "old", old), new: canned(t, folder, "new", new),
		time: time.Second, rounds: rounds, stderr: &stderr,
	}
	f.err = d.run(t.Context(), list, &stdout)
	f.table, f.progress = stdout.String(), stderr.String()
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	require.NoError(t, err)
	f.calls = strings.Split(strings.TrimSpace(string(calls)), "\n")
	return f
}

const (
	call  = "call-64B/64/asterisque"
	idles = "idle-sessions/1000/asterisque"
)

// shows returns a command that prints a row.
func shows(row string) string { return "echo '" + row + "'" }

// Two builds are measured in turn.
func TestAgainst_InTurn(t *testing.T) {
	answers := map[string]string{call: shows(`{"ops_per_s":100}`), idles: shows(`{"mem_bytes":100}`)}
	f := fight(t, 10, []string{call, idles}, answers, answers)
	require.NoError(t, f.err)
	require.Len(t, f.calls, 40)
	require.Equal(t, []string{
		"old " + call, "new " + call, "old " + idles, "new " + idles,
		"new " + call, "old " + call, "new " + idles, "old " + idles,
		"old " + call, "new " + call, "old " + idles, "new " + idles,
	}, f.calls[:12], "every round has every row, and the other build first")
	require.Contains(t, f.progress, " 20/20 ")
	require.Contains(t, f.progress, "old 100, new 100 calls/s")
}

// The table has a row for each figure of both builds.
func TestTable_FigureOfBoth(t *testing.T) {
	f := fight(t, 10, []string{call, idles},
		map[string]string{
			call:  shows(`{"ops_per_s":1000,"mb_per_s":1,"p50_us":50,"p99_us":100,"allocs_per_op":2,"bytes_per_op":280,"cpu_us_per_op":null}`),
			idles: shows(`{"ops_per_s":null,"mem_bytes":16000}`),
		},
		map[string]string{
			call:  shows(`{"ops_per_s":1500,"mb_per_s":1.5,"p50_us":50,"p99_us":101,"allocs_per_op":1,"bytes_per_op":280.5,"cpu_us_per_op":2}`),
			idles: shows(`{"ops_per_s":null,"mem_bytes":8000,"new_bytes":1}`),
		})
	require.NoError(t, f.err, "what is worse by less than three per cent is no failure")
	require.True(t, strings.HasPrefix(f.table, `| cell | figure | old | new | ratio | interval | verdict |
| --- | --- | ---: | ---: | ---: | :---: | --- |
| call-64B/64/asterisque | ops/s | 1,000 | 1,500 | 1.500 | 1.500 to 1.500 | better |
| call-64B/64/asterisque | p50 µs | 50.0 | 50.0 | 1.000 | 1.000 to 1.000 | same |
| call-64B/64/asterisque | p99 µs | 100 | 101 | 0.990 | 0.990 to 0.990 | worse |
| call-64B/64/asterisque | allocs/op | 2.00 | 1.00 | 2.000 | 2.000 to 2.000 | better |
| call-64B/64/asterisque | B/op | 280 | 281 | 1.000 | 1.000 to 1.000 | same |
| idle-sessions/1000/asterisque | memory B | 16,000 | 8,000 | 2.000 | 2.000 to 2.000 | better |

Medians of 10 rounds of 1s each;`), f.table)
	require.Contains(t, f.table, "a confidence of 97.9 %")
}

// A cell with a WORSE figure is measured again.
func TestWorse_MeasuredAgain(t *testing.T) {
	f := fight(t, 10, []string{call, idles},
		map[string]string{call: shows(`{"ops_per_s":100,"p50_us":10}`), idles: shows(`{"mem_bytes":100}`)},
		map[string]string{call: shows(`{"ops_per_s":100,"p50_us":20}`), idles: shows(`{"mem_bytes":100}`)})
	require.EqualError(t, f.err, "1 of 3 figures are WORSE: "+call+" p50 µs")
	require.Len(t, f.calls, 60, "ten more rounds of one row")
	require.Contains(t, f.progress, call+" is measured again, because a figure is WORSE")
	require.Contains(t, f.table, "| p50 µs | 10.0 | 20.0 | 0.500 | 0.500 to 0.500 | WORSE, measured again |")
	require.Contains(t, f.table, "| ops/s | 100 | 100 | 1.000 | 1.000 to 1.000 | same, measured again |")
}

// A figure that is much worse only once is not WORSE.
func TestWorse_OnlyOnce(t *testing.T) {
	// The new build's latency is bad in the first ten rounds, and its rate in the second ten.
	changes := `if [ $(grep -c new "${0%/*}/calls") -gt 10 ]; then ` + shows(`{"ops_per_s":50,"p50_us":10}`) +
		`; else ` + shows(`{"ops_per_s":100,"p50_us":20}`) + `; fi`
	f := fight(t, 10, []string{call}, map[string]string{call: shows(`{"ops_per_s":100,"p50_us":10}`)}, map[string]string{call: changes})
	require.NoError(t, f.err)
	require.Contains(t, f.table, "| p50 µs | 10.0 | 10.0 | 1.000 | 1.000 to 1.000 | same, measured again |")
	require.Contains(t, f.table, "| ops/s | 100 | 50.0 | 0.500 | 0.500 to 0.500 | worse, measured again |")
}

// A build that fails is an error.
func TestAgainst_FailingBuild(t *testing.T) {
	good, bad := map[string]string{call: shows(`{"ops_per_s":100}`), idles: shows(`{"mem_bytes":1}`)},
		map[string]string{call: "echo 'bench: it broke | badly' >&2; exit 1", idles: shows(`{"mem_bytes":1}`)}

	f := fight(t, 10, []string{call, idles}, good, bad)
	require.EqualError(t, f.err, "the new build failed: "+call)
	require.Contains(t, f.table, "| "+call+" | | | | | | the new build failed: it broke / badly |")
	require.Contains(t, f.table, "| same |", "the other rows are there all the same")
	require.Len(t, f.calls, 22, "what failed is not measured any more")
	require.Contains(t, f.progress, " 11/11 ")

	f = fight(t, 10, []string{call, idles}, map[string]string{idles: good[idles]}, good)
	require.NoError(t, f.err, "a row that an older build does not have is no fault of the new one")
	require.Contains(t, f.table, "| "+call+" | | | | | | the old build failed: there is no such cell |")

	f = fight(t, 10, []string{call}, bad, good)
	require.EqualError(t, f.err, "there is no figure that both builds have")
	f = fight(t, 10, []string{call}, map[string]string{call: "echo nonsense"}, good)
	require.Contains(t, f.table, "its output makes no sense")
}

// -against compares this build with the named one.
func TestAgainst_ThisBuild(t *testing.T) {
	old := canned(t, t.TempDir(), "old", map[string]string{call: shows(`{"ops_per_s":1e-3}`)})
	code, stdout, stderr := bench(fakes(), "-against", old, "-only", "call-64B/64", "-time", "5ms")
	require.Equal(t, 0, code, stderr)
	require.Regexp(t, `\| call-64B/64/asterisque \| ops/s \| 0 \| .* \| better \|`, stdout)
	require.Equal(t, 1, strings.Count(stdout, "call-64B"), "no other callers, no other implementation: %s", stdout)
	require.Contains(t, stderr, " 10/10 ")

	old = canned(t, t.TempDir(), "old", map[string]string{call: shows(`{"ops_per_s":1e12}`)})
	code, stdout, stderr = bench(fakes(), "-against", old, "-only", "call-64B/64", "-time", "5ms")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "| WORSE, measured again |")
	require.Contains(t, stderr, "1 of 1 figures are WORSE: call-64B/64/asterisque ops/s")

	code, _, stderr = bench(fakes(), "-against", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "bench: -against: ")
	code, _, stderr = bench(fakes(), "-against", old, "-only", "nothing")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "there is nothing to measure")
}

// An interrupt ends a comparison.
func TestAgainst_Interrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o, err := parseOptions([]string{"-against", os.Args[0]}, t.Output())
	require.NoError(t, err)
	require.EqualError(t, against(ctx, o, t.Output(), t.Output(), fakes()), "interrupted")
}

func TestAgainst_Defaults(t *testing.T) {
	o, err := parseOptions([]string{"-against", "old"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, leastRounds, o.rounds)
	require.Equal(t, 2*time.Second, o.time)

	o, err = parseOptions([]string{"-against", "old", "-quick", "-rounds", "12"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, 12, o.rounds)
	require.Equal(t, time.Second, o.time)
}
