package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var breaking = flag.Bool("breaks", false, "break rules in copies of this library, and see the scenarios find it")

// breaks are rules that this library follows, each with an edit of the code that breaks the rule.
// The name of each is that of its scenario.
var breaks = []struct{ scenario, file, was, is string }{
	{"an Open with an id of the receiver's parity", "internal/call/table.go", `case id&1 == uint64(t.odd):`, `case false:`},
	{"an Open with an id that was used", "internal/call/table.go", `case id < t.lastSeen:`, `case false:`},
	{"a Block for a pipe that was never opened", "internal/call/table.go", `return nil, aborts.Violation("message for pipe %d, which was never opened", id)`, `return nil, nil`},
	{"a Block after the end of its direction", "internal/call/transport.go", `return aborts.Violation("Block for pipe %d after the end of its direction", m.Pipe)`, `return nil`},
	{"Blocks beyond the window end the pipe with WindowViolation, and nothing else", "internal/call/transport.go", `case piping.Overrun:`, `case piping.Overrun + 100:`},
	{"a Block of the opener of a unary call", "internal/call/inbound_endpoint.go", `return aborts.Violation("Block for pipe %d, which is that of a unary call", b.Pipe)`, `return nil`},
	{"a second Sync", "internal/call/receive.go", `return aborts.Violation("a second Sync")`, `return nil`},
	{"an Ack of more than was sent is a violation", "internal/call/receive.go", `return aborts.Violation("Ack of %d frames, which is more than were sent", c.Count)`, `return nil`},
	{"a Ping is answered with its Pong", "internal/call/receive.go", `r.x.Carrier.Ping(c.N)`, ``},
	{"metadata with 33 entries is refused, and nothing else suffers", "internal/call/receive.go", `message.CheckMetadata(m.Meta.Metadata); err != nil {`, `message.CheckMetadata(m.Meta.Metadata); false {`},
	{"a function that is not there is refused with NoFunction", "internal/call/receive.go", `codec.ErrNoFunction.Withf("function %d", m.Function)`, `codec.ErrBadParams.Withf("function %d", m.Function)`},
	{"a nested Open whose enclosing call never was is refused with Canceled", "internal/call/receive.go", `codec.ErrCanceled.Withf("the call that it`, `codec.ErrOverloaded.Withf("the call that it`},
	{"a Block of a pipe with an unfinished message is a violation", "internal/call/receive.go", `if r.x.Carrier.HasPart(m.Pipe) { // which may be the Open`, `if false { // which may be the Open`},
	{"a max message below 1024 is refused, where the peer accepts", "internal/handshake/agreement.go", `const minFrame = 1 << 10`, `const minFrame = 1 << 9`},
	{"an overhead below 512 is refused, where the peer accepts", "codec/message/sync.go", `r.UintFrom("overhead", MinOverhead, MaxPipe)`, `r.UintFrom("overhead", 0, MaxPipe)`},
	{"calls wait until there is room for their Opens", "internal/call/receive.go", `r.x.out.opens.Raise(c.Limit)`, ``},
	{"a part of less than 1024 bytes that is not the last one is a violation", "codec/message/part.go", `LeastPart = 1 << 10`, `LeastPart = 1 << 9`},
	{"a later part of less than 1024 bytes that is not the last one is a violation", "internal/carrier/reassembler.go", `case got < u.whole && len(m.Bytes) < message.LeastPart:`, `case false:`},
	{"a part that goes beyond the whole is a violation", "internal/carrier/reassembler.go", `case got > u.whole:`, `case false:`},
	{"a side that says nothing for the timeout is given up without a word", "internal/carrier/reader_end.go", `c.end(a, false)`, `c.end(a, true)`},
	{"an idempotency key with other parameters is refused with BadParams", "internal/idempotency/answers.go", `m.function != open.Function || m.digest != digest`, `m.function != open.Function`},
	{"an unfinished Open is refused behind a Drain", "internal/call/end.go", `x.turnAwayUnfinished(id, p, errShutDown)`, `_, _ = id, p`},
	{"behind a Drain no call is made", "internal/call/receive.go", `if r.x.out.retire() {`, `if false {`},
}

// The code of each break is in its file exactly once, and its scenario exists.
func TestBreaks_CodeIsThereOnce(t *testing.T) {
	names := map[string]bool{}
	for _, sc := range suiteOfTheSpecification(t).Scenarios {
		names[sc.Name] = true
	}
	for _, b := range breaks {
		text, err := os.ReadFile(filepath.Join("..", b.file))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), b.was), "%s: %s", b.file, b.was)
		require.True(t, names[b.scenario], b.scenario)
	}
}

// The scenario of each break finds it, and no other does.
func TestBreaks_AreFound(t *testing.T) {
	if !*breaking {
		t.Skip("-breaks is not given: it builds the library for each")
	}
	for _, b := range breaks {
		t.Run(b.scenario, func(t *testing.T) {
			broken := ours(t, "-overlay", overlay(t, b.file, b.was, b.is))
			_, failed := broken.playAgainst(t, "tcp", ": "+regexp.QuoteMeta(b.scenario)+"$", true)
			require.Equal(t, []string{b.scenario}, failed)
		})
	}
}

// overlay returns a file with which go build uses a changed copy of a source file.
func overlay(t *testing.T, file, was, is string) string {
	path, err := filepath.Abs(filepath.Join("..", file))
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	dir := t.TempDir()
	changed, name := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), was, is, 1)), 0o644))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, list, 0o644))
	return name
}
