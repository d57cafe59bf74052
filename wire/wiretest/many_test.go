package wiretest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// A fault of one frame in 20,000 is named.
func TestMany_OneIn20000(t *testing.T) {
	for fault, test := range map[string]struct {
		wrap func(w wire.Wire) wire.Wire
		want string
	}{
		"lost":             {loses, "frame 20000 is missing: frame 20001 came behind frame 19999"},
		"doubled":          {doubles, "frame 20000 came twice, the second time behind frame 20000"},
		"late by one":      {delays(1), "frame 20000 is out of order: it came behind frame 20001"},
		"late by many":     {delays(500), "frame 20000 is out of order: it came behind frame 20001"},
		"altered":          {alter, "frame 20000 is altered: the 9 bytes that arrived are not those that were written"},
		"overtaken by all": {delays(many), "frame 20000 is missing: frame 20001 came behind frame 19999"},
	} {
		for _, check := range []string{"", " by WriteBatch", " by WriteVector", " by TryWriteBatch"} {
			t.Run(fault+check, func(t *testing.T) {
				a, b := wire.Pipe()
				defer b.Close()
				defer a.Close()
				failures := runFor(t, usual, "none of many frames is lost, doubled or moved"+check, whole(a), test.wrap(b))
				require.Len(t, failures, 1)
				require.Contains(t, failures[0], test.want)
			})
		}
	}
}

// TestMany_AnyStart requires that a missing frame is found on a Wire that has carried frames before
// the check, at any count.
func TestMany_AnyStart(t *testing.T) {
	for _, begin := range []int{1, 9_999, 18_999, 19_999} {
		a, b := wire.Pipe()
		b = &everyNth{complete: whole(b), n: begin, fault: func(*everyNth, []byte) bool { return false }}
		failures := runFor(t, usual, "none of many frames is lost, doubled or moved", a, b)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.Len(t, failures, 1, begin)
		require.Contains(t, failures[0], "is missing", begin)
	}
}

// pipeEnd is an end of a Pipe with its optional interfaces.
type pipeEnd interface {
	wire.Wire
	wire.TryWriter
	wire.Buffered
	wire.Meter
}

// complete is a pipeEnd that also accepts a frame in pieces.
type complete struct{ pipeEnd }

func (c complete) WriteVector(pieces [][]byte) error { return c.WriteBatch(bytes.Join(pieces, nil)) }

func whole(w wire.Wire) complete { return complete{w.(pipeEnd)} }

// everyNth applies a fault to every 20,000th frame that is read.
type everyNth struct {
	complete
	n     int
	after int    // how many frames overtake the one that is held
	held  []byte // nil: none
	fault func(e *everyNth, frame []byte) (deliver bool)
}

func (e *everyNth) ReadFrame(max int) ([]byte, error) {
	if e.held != nil && e.after == 0 {
		f := e.held
		e.held = nil
		return f, nil
	}
	f, err := e.complete.ReadFrame(max)
	if err != nil {
		return nil, err
	}
	e.after--
	if e.n++; e.n%20_000 == 0 && !e.fault(e, f) {
		return e.ReadFrame(max)
	}
	return f, nil
}

func every(fault func(e *everyNth, frame []byte) bool) func(w wire.Wire) wire.Wire {
	return func(w wire.Wire) wire.Wire { return &everyNth{complete: whole(w), fault: fault} }
}

var (
	loses   = every(func(*everyNth, []byte) bool { return false })
	doubles = every(func(e *everyNth, f []byte) bool { e.hold(f, 0); return true })
	alter   = every(func(_ *everyNth, f []byte) bool { f[0]++; return true })
)

// delays makes a frame arrive behind the given number of later frames.
func delays(others int) func(w wire.Wire) wire.Wire {
	return every(func(e *everyNth, f []byte) bool { e.hold(f, others); return false })
}

func (e *everyNth) hold(frame []byte, others int) {
	e.held, e.after = append([]byte{}, frame...), others
}
