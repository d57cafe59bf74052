package message

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// example returns the text of the specification between from and to, without line breaks.
func example(t *testing.T, from, to string) string {
	_, text, ok := strings.Cut(readSpec(t), from)
	require.True(t, ok, from)
	text, _, ok = strings.Cut(text, to)
	require.True(t, ok, to)
	return strings.Join(strings.Fields(text), " ")
}

// The example of metadata in the specification is correct.
func TestExample_Metadata(t *testing.T) {
	text := example(t, "Example: `{\"id\"", "cost of its Open")
	found := regexp.MustCompile("`([0-9a-f]{10}[0-9a-f ]+)`, which is (\\d+) of the 4096 bytes, and adds the (\\d+)").FindStringSubmatch(text)
	require.NotNil(t, found, text)
	encoded, err := hex.DecodeString(strings.ReplaceAll(found[1], " ", ""))
	require.NoError(t, err)
	m, err := ParseMetadata(encoded)
	require.NoError(t, err)
	size := 0
	for key, value := range m {
		size += len(key) + reflect.ValueOf(value).Len()
	}
	require.Equal(t, found[2], strconv.Itoa(size))
	require.Equal(t, found[3], strconv.Itoa(len(encoded)))
}

// The example of parts in the specification is correct.
func TestExample_Parts(t *testing.T) {
	rows := regexp.MustCompile(`\[4, 2, (\d+) bytes(?:, (\d+))?\]`).FindAllStringSubmatch(readSpec(t), -1)
	require.Len(t, rows, 3)
	frame := (&Block{Pipe: 2, Payload: make([]byte, 2994)}).AppendTo(nil)
	require.Equal(t, rows[0][2], strconv.Itoa(len(frame)))
	require.Contains(t, readSpec(t), fmt.Sprintf("begins, with `% x`: a payload of 2994 bytes", frame[:6]))
	sum := 0
	for _, row := range rows {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		sum += n
	}
	require.Equal(t, len(frame), sum)
}

// The examples of costs in the specification are correct.
func TestExample_Costs(t *testing.T) {
	const overhead, early = 512, 4096
	open := Open{Params: make([]byte, 100), Meta: Meta{Trace: make([]byte, 55)}}
	unary := open.Cost(overhead, early)
	open.Meta.Stream = true
	block, empty := Block{Payload: make([]byte, 1000)}, Block{}
	require.Contains(t, example(t, "Example, with an overhead of 512 and an early credit of 4096: a unary", "### Windows"),
		fmt.Sprintf("costs 100 + 55 + 512 = %d, the same Open of a stream %d. A Block of 1000 bytes costs %d, an empty one %d.",
			unary, open.Cost(overhead, early), block.Cost(overhead), empty.Cost(overhead)))
}

// TestExample_Window computes the last three columns of the example from the events of each row, by
// the rules above it.
func TestExample_Window(t *testing.T) {
	const overhead, early, window = 512, 2048, 4096
	cost := func(payload int) int { return int((&Block{Payload: make([]byte, payload)}).Cost(overhead)) }
	_, table, ok := strings.Cut(readSpec(t), "| event | sent | limit | taken |\n| --- | --- | --- | --- |\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var sent, limit, taken int
	const end, first = 103536, 3584
	states := []func(){
		func() { limit = early },                              // the Open
		func() { sent += cost(1000) },                         // the first Block
		func() { require.Greater(t, sent+cost(1000), limit) }, // the second waits
		func() { // the function begins
			require.GreaterOrEqual(t, taken+window-limit, window/2)
			limit = taken + window
		},
		func() { sent += cost(1000); require.LessOrEqual(t, sent, limit) },
		func() { // the third waits
			require.Equal(t, end, sent+cost(100000))
			require.Greater(t, sent+cost(1024), limit)
		},
		func() { taken = sent; limit = taken + window },
		func() { // its first part
			require.Equal(t, first, limit-sent-overhead)
			sent += cost(first)
		},
		func() { limit = end },
		func() { sent += 100000 - first; require.Equal(t, limit, sent) },
		func() { taken = sent; limit = taken + window },
		func() { sent += cost(1); require.LessOrEqual(t, sent, limit) },
	}
	rows := strings.Split(table, "\n")
	require.Len(t, rows, len(states))
	for i, happens := range states {
		happens()
		require.Regexp(t, fmt.Sprintf(`\| %d \| %d \| %d \|$`, sent, limit, taken), rows[i])
	}
}

// The example of the room for Opens in the specification is correct.
func TestExample_RoomForOpens(t *testing.T) {
	const maxMessage, overhead, early, room = 16384, 512, 4096, 32768
	text := example(t, "Example, with a max message of 16384", "### Nested calls")
	largest := maxMessage + overhead + early
	kept := min(room/8, room-largest)
	cost := int((&Open{Params: make([]byte, 100)}).Cost(overhead, early))
	require.Contains(t, text, fmt.Sprintf("The largest Open costs %d, and k is %d: %d together.", largest, kept, largest+kept))
	require.Contains(t, text, fmt.Sprintf("parameters of 100 bytes cost %d each", cost))
	n := 0
	for room-(n+1)*cost >= largest+kept {
		n++
	}
	require.Contains(t, text, fmt.Sprintf("After %d of them, all taken, used is %d and %d are left: no Credit.", n, n*cost, room-n*cost))
	n++
	require.Contains(t, text, fmt.Sprintf("used is %d, %d are left, and a Credit says that the limit is now %d + %d = %d.",
		n*cost, room-n*cost, room, n*cost, room+n*cost))
}

// The example of the extra credit in the specification is correct.
func TestExample_ExtraCredit(t *testing.T) {
	const early, most = 4096, 64 << 10
	text := example(t, "Example, with an early credit of 4096 and an extra credit of 1000000", "### Room for Opens")
	left := 1_000_000
	take := func() int {
		n := min(most-early, left/8)
		left -= n
		return n
	}
	require.Contains(t, text, fmt.Sprintf("takes %d, and its Blocks may cost %d before a Credit.", take(), most))
	for range 8 {
		take()
	}
	require.Contains(t, text, fmt.Sprintf("After nine, %d are left", left))
	require.Contains(t, text, fmt.Sprintf("takes %d.", take()))
}

// The example of nested calls in the specification is correct.
func TestExample_NestedCalls(t *testing.T) {
	const overhead, early, room, most = 512, 4096, 65536, 64
	open := Open{Params: make([]byte, 100), Meta: Meta{Nested: true}}
	unary := int(open.Cost(overhead, early))
	open.Meta.Stream = true
	stream := int(open.Cost(overhead, early))
	text := example(t, "a nested room of 65536 and 64 nested", "### Without windows")
	require.Contains(t, text, fmt.Sprintf("cost %d: %d of them may be unanswered at once, and fill %d of the room", unary, most, most*unary))
	require.Contains(t, text, fmt.Sprintf("Opens of streams cost %d: of them %d fit, with %d, and not %d.",
		stream, room/stream, room/stream*stream, room/stream+1))
}

// TestFrames_Lengths checks the formulas of section 9 of the specification with lengths and numbers
// on both sides of every size class of CBOR.
func TestFrames_Lengths(t *testing.T) {
	n := func(x uint64) int {
		switch {
		case x < 24:
			return 1
		case x < 1<<8:
			return 2
		case x < 1<<16:
			return 3
		case x < 1<<32:
			return 5
		}
		return 9
	}
	sizes := []uint64{0, 1, 23, 24, 255, 256, 65535, 65536}
	for _, pipe := range append(sizes, 1<<32-1, 1<<32, MaxPipe) {
		for _, size := range sizes {
			bytes := make([]byte, size)
			meta := Meta{TTL: 1<<31 - 1, Loss: 127, Skipped: 24}
			block := Block{Pipe: pipe, Payload: bytes}
			require.Len(t, block.AppendTo(nil), 2+n(pipe)+n(size)+int(size))
			block.Meta = meta
			require.Len(t, block.AppendTo(nil), 2+n(pipe)+n(size)+int(size)+1+(1+5)+(1+2)+(1+2))
			result := Close{Pipe: pipe, Result: bytes}
			require.Len(t, result.AppendTo(nil), 3+n(pipe)+n(size)+int(size))
			open := Open{Pipe: pipe, Function: 256, Priority: -25, Params: bytes}
			require.Len(t, open.AppendTo(nil), 2+n(pipe)+3+2+n(size)+int(size))
			open.Meta = Meta{TTL: 24, Trace: make([]byte, 55)}
			require.Len(t, open.AppendTo(nil), 2+n(pipe)+3+2+n(size)+int(size)+1+(1+2)+(1+n(55)+55))
		}
	}
	most := Block{Pipe: MaxPipe, Payload: make([]byte, 70000), Meta: Meta{TTL: 1<<31 - 1, Loss: 127, Skipped: MaxPipe}}
	require.Len(t, most.AppendTo(nil), 70000+36)
	full := Open{Pipe: MaxPipe, Function: 65535, Priority: -128, Params: make([]byte, 70000),
		Meta: Meta{TTL: 1<<31 - 1, Nested: true, Within: MaxPipe, Stream: true, Window: MaxPipe, Initial: MaxPipe}}
	require.Len(t, full.AppendTo(nil), 70000+58)
	last := Close{Pipe: MaxPipe, Result: make([]byte, 70000)}
	require.Len(t, last.AppendTo(nil), 70000+17)
}
