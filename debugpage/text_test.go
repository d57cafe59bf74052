package debugpage

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

func TestTable_Alignment(t *testing.T) {
	table := newTable("name", "n", "time", "last")
	table.row("é", 7, duration(time.Second), "x")
	table.row("long", 12345, duration(12*time.Millisecond), "-")
	var b bytes.Buffer
	table.print(&b)
	require.Equal(t, `
  name      n  time  last
  é         7    1s  x
  long  12345  10ms  -
`, b.String())
}

func TestTable_Groups(t *testing.T) {
	table := newTable("name", "now", "times", "n", "left")
	table.group(" waits ", 1, 2)
	table.group(" a long name ", 3, 3)
	table.row("x", 1, 1234, 7, "-")
	var b bytes.Buffer
	table.print(&b)
	require.Equal(t, `
        ─ waits ──   a long name
  name  now  times              n  left
  x       1   1234              7  -
`, b.String())
}

func TestText_NoBound(t *testing.T) {
	require.Equal(t, []number{"any", "8192 KiB"}, []number{bound(0), bound(8 << 20)})
}

func TestText_Units(t *testing.T) {
	for d, want := range map[time.Duration]number{
		0: "0s", 1234: "1.23µs", 123_456: "120µs", 1_234_567: "1.23ms", 123_456_789: "120ms", 1_234_567_890: "1.23s", 83_500_000_000: "1m24s",
	} {
		require.Equal(t, want, duration(d))
	}
	for n, want := range map[int]number{0: "0", 10239: "10239", 10240: "10 KiB", 5 << 20: "5120 KiB", 17 << 20: "17 MiB"} {
		require.Equal(t, want, amount(limits.Amount{Bytes: n}))
	}
}

func TestText_Plain(t *testing.T) {
	for text, want := range map[string]string{
		"": "-", "node 7": "node 7", "ünï": "ünï", "a\tb": `"a\tb"`, "\x00": `"\x00"`, "a\u2066b": `"a\u2066b"`,
		strings.Repeat("x", 64): strings.Repeat("x", 64),
		strings.Repeat("x", 65): strings.Repeat("x", 63) + "…",
	} {
		require.Equal(t, want, plain(text))
	}
}

func TestText_UnknownPath(t *testing.T) {
	known := asterisque.Path{RoundTrip: 50 * time.Millisecond, Rate: 1.25e6, InFlight: 70_000, Limit: 78_000, Bound: asterisque.BoundByPath}
	var b bytes.Buffer
	printPaths(&b, []sessionView{
		{ID: "0123456789", Peer: "a", Stats: asterisque.Stats{Path: known}},
		{ID: "1234567890", Peer: "b"},
	})
	require.Contains(t, b.String(), `
  session   peer  round trip    delivers  in flight  at most  bound by
  01234567  a           50ms  1220 KiB/s     68 KiB   76 KiB  path
  12345678  b              -           -          0      any  application
`)
}
