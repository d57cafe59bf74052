package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers have three significant digits.
func TestNumber_ThreeDigits(t *testing.T) {
	for v, want := range map[figure]string{
		0: "0", 0.001: "0", 0.126: "0.13", 1: "1.00", 9.876: "9.88", 12.34: "12.3", 123.4: "123", 1234: "1,230", 98_765: "98,800", 1_234_567: "1,230,000", -5: "-5.00",
	} {
		require.Equal(t, want, number(v))
	}
	require.Empty(t, number(absent))
	require.Equal(t, "12 %", percent(0.123))
	require.Empty(t, percent(absent))
	for n, want := range map[int64]string{1: "1", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 1234567: "1,234,567"} {
		require.Equal(t, want, thousands(n))
	}
}

func sampleRows(t *testing.T) []row {
	var rows []row
	for _, c := range []struct {
		name string
		ops  figure
	}{{"call-64B/1/asterisque", 100_000}, {"call-64B/1/floor-pingpong", 120_000}, {"both-ways/1024/asterisque", 300_000}, {"urgent/1/asterisque", 999}} {
		found, err := findCell(c.name, implementations())
		require.NoError(t, err)
		r := newRow(found)
		r.OpsPerS, r.P99, r.Spread = c.ops, 12.5, 0.05
		rows = append(rows, r)
	}
	rows[2].OneWay = 250_000
	return append(rows, failed(cell{workloads()[0], 8, fakes()[2]}, "a|b"))
}

func TestTable(t *testing.T) {
	require.Equal(t, `| workload | × | implementation | ops/s | MB/s | p50 µs | p99 µs | p99.9 µs | allocs/op | B/op | CPU µs/op | memory B | spread | |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
| call-64B | 1 | **asterisque** | 100,000 |  |  | 12.5 |  |  |  |  |  | 5 % |  |
| call-64B | 1 | floor-pingpong | 120,000 |  |  | 12.5 |  |  |  |  |  | 5 % |  |
| both-ways | 1,024 | **asterisque** | 300,000 |  |  | 12.5 |  |  |  |  |  | 5 % | one way 250,000 ops/s: 1.20 times that |
| urgent | 1 | **asterisque** | 999 |  |  | 12.5 |  |  |  |  |  | 5 % |  |
| call-64B | 8 | broken |  |  |  |  |  |  |  |  |  |  | failed: a/b |
`, table(sampleRows(t)))
}

// Update writes the table between the markers.
func TestUpdate_BetweenMarkers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+tableBegin+"old\n"+tableEnd+"after\n"), 0o600))
	for range 2 { // the second time finds what the first has written
		require.NoError(t, update(file, "| new |\n"))
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "before\n"+tableBegin+"\n| new |\n\n"+tableEnd+"after\n", string(b))
	}
	require.NoError(t, os.WriteFile(file, []byte("nothing\n"), 0o600))
	require.ErrorContains(t, update(file, "| new |\n"), "<!-- table: begin -->")
	require.Error(t, update(filepath.Join(t.TempDir(), "none"), ""))
}

// README.md has the markers for the table.
func TestUpdate_Readme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(b), tableBegin)
	require.Contains(t, string(b), tableEnd)
	paths, err := os.ReadFile("PATHS.md")
	require.NoError(t, err)
	require.Contains(t, string(paths), tableBegin)
	require.Contains(t, string(paths), tableEnd)
	for _, w := range workloads() {
		require.Contains(t, string(b), "`"+w.name+"`", "every workload is explained")
	}
	for _, i := range implementations() {
		require.Contains(t, string(b), "`"+i.name+"`", "every implementation is explained")
	}
}

// The plot has a bar for each row.
func TestPlot_BarPerRow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bars.svg")
	require.NoError(t, plotRows(sampleRows(t), file))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, want := range []string{"<svg", "call-64B × 1", "less is better", "both-ways", "floor-pingpong", "calls/s", "#D9480F", "#ADB5BD", plotFont + plotFontsAlike} {
		require.Contains(t, string(b), want)
	}
	require.NotContains(t, string(b), "broken", "what failed has no bar")

	require.Error(t, plotRows(sampleRows(t)[4:], file), "there is nothing to draw")
	require.Error(t, plotRows(sampleRows(t), filepath.Join(t.TempDir(), "no", "folder.svg")))
}
