package wiretest

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestRun_SoundWire(t *testing.T) {
	t.Run("with all optional interfaces but deadlines", func(t *testing.T) {
		Run(t, func(*testing.T) (a, b wire.Wire) { return wire.Pipe() })
	})
	t.Run("with the five methods only", func(t *testing.T) {
		RunInBubbles(t, func(*testing.T) (a, b wire.Wire) {
			a, b = wire.Pipe()
			return plain{a}, plain{b}
		})
	})
	t.Run("with deadlines and without a buffer", func(t *testing.T) {
		RunInBubbles(t, func(*testing.T) (a, b wire.Wire) {
			p, q := net.Pipe()
			return wire.FromConn(p), wire.FromConn(q)
		})
	})
}

// TestRun_EachDefect runs, for each check, broken wires that it must find. The wires without the
// defect pass (see above).
func TestRun_EachDefect(t *testing.T) {
	tests := []struct {
		check string // of checks
		fault string
		wrap  func(w wire.Wire) wire.Wire
	}{
		{"frames of all sizes arrive whole", "cuts large frames", func(w wire.Wire) wire.Wire { return &alters{plain{w}, cut} }},
		{"frames of all sizes arrive whole", "joins two frames", func(w wire.Wire) wire.Wire { return &alters{plain{w}, join} }},
		{"frames of all sizes arrive whole", "flips a bit", func(w wire.Wire) wire.Wire { return &alters{plain{w}, flip} }},
		{"empty frames are frames", "drops empty frames", func(w wire.Wire) wire.Wire { return &alters{plain{w}, dropEmpty} }},
		{"frames keep their order in both directions at once", "swaps frames", func(w wire.Wire) wire.Wire { return &swaps{plain: plain{w}} }},
		{"both directions work under load", "swaps frames of one call", func(w wire.Wire) wire.Wire { return &alters{plain{w}, reverse} }},
		{"none of many frames is lost, doubled or moved", "loses one", loses},
		{"a frame as large as allowed is accepted", "is off by one", func(w wire.Wire) wire.Wire { return strict{plain{w}} }},
		{"a frame larger than allowed is refused", "ignores max", func(w wire.Wire) wire.Wire { return lax{plain{w}} }},
		{"a frame larger than allowed is refused", "has an error of its own", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"buffers are not kept after WriteFrames", "keeps them", func(w wire.Wire) wire.Wire { return &keeps{Wire: w} }},
		{"a frame stays valid until the next ReadFrame", "reads ahead into the same memory", func(w wire.Wire) wire.Wire { return &readsAhead{plain: plain{w}} }},
		{"a peer that does not read stops the writer", "has no bound", func(w wire.Wire) wire.Wire { return &unbounded{plain: plain{w}} }},
		{"a peer that does not read stops the writer", "loses a frame", func(w wire.Wire) wire.Wire { return &lossy{plain: plain{w}} }},
		{"Close ends a ReadFrame that waits", "does not wake it", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"Close ends a ReadFrame that waits", "says io.EOF", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"Close ends a WriteFrames that waits", "does not wake it", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"no other method waits for a ReadFrame and a WriteFrames that wait", "does not wake them", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"Close may be called repeatedly and concurrently", "fails the second time", func(w wire.Wire) wire.Wire { return &once{Wire: w} }},
		{"after Close everything fails with net.ErrClosed", "does not close", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"after Close everything fails with net.ErrClosed", "has an error of its own", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"the peer's Close is io.EOF behind all frames", "has an error of its own", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"the peer's Close is io.EOF behind all frames", "loses the last frame", func(w wire.Wire) wire.Wire { return &swaps{plain: plain{w}} }},
		{"the peer's Close ends a WriteFrames that waits", "does not notice", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"addresses are there and stay", "has none", func(w wire.Wire) wire.Wire { return nowhere{w} }},
		{"addresses are there and stay", "forgets them", func(w wire.Wire) wire.Wire { return &forgets{Wire: w} }},
		{"WriteBatch writes many frames", "drops the last", func(w wire.Wire) wire.Wire { return badBatch{Wire: w} }},
		{"WriteBatch does not keep the batch", "keeps it", func(w wire.Wire) wire.Wire { return &keeps{Wire: w} }},
		{"none of many frames is lost, doubled or moved by WriteBatch", "loses one", loses},
		{"Close ends a WriteBatch that waits", "does not wake it", func(w wire.Wire) wire.Wire { return drowsy{whole(w)} }},
		{"WriteVector writes frames in pieces", "drops what follows an empty piece", func(w wire.Wire) wire.Wire { return badBatch{Wire: w} }},
		{"WriteVector does not keep the pieces", "keeps them", func(w wire.Wire) wire.Wire { return &keeps{Wire: w} }},
		{"none of many frames is lost, doubled or moved by WriteVector", "loses one", loses},
		{"Close ends a WriteVector that waits", "does not wake it", func(w wire.Wire) wire.Wire { return drowsy{whole(w)} }},
		{"TryWriteBatch never waits", "waits", func(w wire.Wire) wire.Wire { return badBatch{Wire: w} }},
		{"none of many frames is lost, doubled or moved by TryWriteBatch", "loses one", loses},
		{"Buffered is right", "lies", func(w wire.Wire) wire.Wire { return liar{w} }},
		{"Keep leaves a frame alone", "gives it away twice", func(w wire.Wire) wire.Wire { return generous{w} }},
		{"Keep leaves a frame alone", "gives more than the frame fills", func(w wire.Wire) wire.Wire { return &lavish{Wire: w} }},
		{"Progress counts what crosses", "counts nothing", func(w wire.Wire) wire.Wire { return countless{w} }},
		{"optional methods make whole interfaces", "has half of one", func(w wire.Wire) wire.Wire { return half{w} }},
		{"Receiving is the memory of half a frame", "says nothing", func(w wire.Wire) wire.Wire { return asides{w, 0} }},
		{"Receiving is the memory of half a frame", "forgets to end it", func(w wire.Wire) wire.Wire { return asides{w, 1} }},
		{"Receiving is the memory of half a frame", "believes what is announced", func(w wire.Wire) wire.Wire { return asides{w, 16 << 20} }},
		{"a read deadline ends ReadFrame and loses nothing", "ignores it", func(w wire.Wire) wire.Wire { return timeless{w} }},
		{"a write deadline ends WriteFrames", "ignores it", func(w wire.Wire) wire.Wire { return timeless{w} }},
	}
	broken := map[string]bool{}
	for _, test := range tests {
		t.Run(test.check+"/"+test.fault, func(t *testing.T) {
			over := func(t *testing.T) {
				a, b := wire.Pipe()
				defer b.Close()
				defer a.Close()
				failures := run(t, test.check, test.wrap(a), test.wrap(b))
				t.Log(failures)
				require.NotEmpty(t, failures, "the check does not find a Wire that %s", test.fault)
			}
			if spins[test.check] || test.fault == "has no bound" { // its writer spins
				over(t)
				return
			}
			synctest.Test(t, over)
		})
		broken[test.check] = true
	}
	for _, c := range checks {
		require.True(t, broken[c.name], "no broken wire shows that the check %q can fail", c.name)
	}
}

// run runs one check over a and b and returns its failures.
func run(t *testing.T, name string, a, b wire.Wire) []string { return runFor(t, short, name, a, b) }

func runFor(t *testing.T, p checkPatience, name string, a, b wire.Wire) []string {
	for _, c := range checks {
		if c.name == name {
			require.True(t, c.applies == nil || c.applies(a), "the broken Wire lacks the interface")
			r := new(recorder)
			done := make(chan struct{})
			go func() { // which FailNow ends
				defer close(done)
				c.run(&rig{T: r, a: a, b: b, checkPatience: p, hung: new(bool)})
			}()
			<-done
			return r.failures
		}
	}
	require.Fail(t, "no such check", name)
	return nil
}

// short is a sufficient patience for Wires within one process.
var short = checkPatience{carry: 100 * time.Millisecond, end: 100 * time.Millisecond}

// recorder is a T that records failures.
type recorder struct{ failures []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) FailNow() { runtime.Goexit() }
