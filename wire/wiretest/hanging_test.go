package wiretest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// A method that does not return is named with its stack.
func TestHang_IsNamed(t *testing.T) {
	const others = "no other method waits for a ReadFrame and a WriteFrames that wait"
	for _, test := range []struct{ method, check string }{
		{"Close", "Close ends a ReadFrame that waits"},
		{"Close", "Close ends a WriteFrames that waits"},
		{"Close", "Close may be called repeatedly and concurrently"},
		{"Close", "after Close everything fails with net.ErrClosed"},
		{"Close", "the peer's Close is io.EOF behind all frames"},
		{"Close", "addresses are there and stay"},
		{"ReadFrame", "frames of all sizes arrive whole"},
		{"ReadFrame", "Close ends a ReadFrame that waits"},
		{"WriteFrames", "frames of all sizes arrive whole"},
		{"WriteFrames", "Close ends a WriteFrames that waits"},
		{"LocalAddr", "addresses are there and stay"},
		{"RemoteAddr", "addresses are there and stay"},
		{"LocalAddr", others},
		{"RemoteAddr", others},
		{"Progress", others},
		{"Receiving", others},
		{"Receiving", "Receiving is the memory of half a frame"},
		{"WriteBatch", "Close ends a WriteBatch that waits"},
		{"WriteVector", "Close ends a WriteVector that waits"},
		{"TryWriteBatch", "TryWriteBatch never waits"},
		{"TryWriteBatch", "after Close everything fails with net.ErrClosed"},
		{"Buffered", "Buffered is right"},
		{"SetReadDeadline", "a read deadline ends ReadFrame and loses nothing"},
		{"SetWriteDeadline", "a write deadline ends WriteFrames"},
	} {
		t.Run(test.method+"/"+test.check, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := wire.Pipe()
				release := make(chan struct{})
				defer b.Close()
				defer a.Close()
				defer close(release)
				stuckAt := func(w wire.Wire) wire.Wire { return &stuck{whole(w), test.method, release} }
				failures := strings.Join(runFor(t, usual, test.check, stuckAt(a), stuckAt(b)), "\n")
				require.Regexp(t, test.method+".* has not returned after (10|30)s", failures)
				require.Contains(t, failures, "(*stuck)."+test.method+"(")
			})
		})
	}
}

// defects are defective Wires for TestHang_RunEnds.
var defects = map[string]struct {
	wrap     func(w complete) wire.Wire
	patience checkPatience // short where the Wire hangs, and nowhere else
	output   string
}{
	"Close": {
		func(w complete) wire.Wire { return &stuck{w, "Close", nil} },
		checkPatience{carry: time.Minute, end: time.Second},
		`Close.* has not returned after 1s(?s:.*)\(\*stuck\)\.Close\(`,
	},
	"ReadFrame": {
		func(w complete) wire.Wire { return &stuck{w, "ReadFrame", nil} },
		checkPatience{carry: time.Second, end: time.Minute},
		`ReadFrame.* has not returned after 1s(?s:.*)\(\*stuck\)\.ReadFrame\(`,
	},
}

const defect = "WIRETEST_DEFECT"

// TestHang_RunEnds starts a process that runs this test with a defective Wire, and expects its
// failure.
func TestHang_RunEnds(t *testing.T) {
	if d, ok := defects[os.Getenv(defect)]; ok {
		runAll(t, func(*testing.T) (a, b wire.Wire) {
			a, b = wire.Pipe()
			return d.wrap(whole(a)), d.wrap(whole(b))
		}, d.patience)
		return
	}
	for method, d := range defects {
		t.Run(method, func(t *testing.T) {
			t.Parallel() // both wait
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHang_RunEnds$", "-test.v")
			cmd.Env = append(os.Environ(), defect+"="+method)
			out, err := cmd.CombinedOutput()
			require.NoError(t, ctx.Err(), "the process hangs")
			require.Error(t, err)
			require.Regexp(t, d.output, string(out))
			require.Contains(t, string(out), "a method of the Wire has not returned in a check before")
			require.NotContains(t, string(out), "goroutines left behind")
		})
	}
}

// stuck blocks in one method until it is released. The other methods are those of a Pipe.
type stuck struct {
	complete
	method  string
	release chan struct{} // nil: never
}

func (s *stuck) at(method string) {
	if method == s.method {
		<-s.release
	}
}

func (s *stuck) ReadFrame(max int) ([]byte, error) {
	s.at("ReadFrame")
	return s.complete.ReadFrame(max)
}

func (s *stuck) WriteFrames(frames [][]byte) error {
	s.at("WriteFrames")
	return s.complete.WriteFrames(frames)
}

func (s *stuck) Close() error {
	s.at("Close")
	return s.complete.Close()
}

func (s *stuck) WriteBatch(batch []byte) error {
	s.at("WriteBatch")
	return s.complete.WriteBatch(batch)
}

func (s *stuck) WriteVector(pieces [][]byte) error {
	s.at("WriteVector")
	return s.complete.WriteVector(pieces)
}

func (s *stuck) TryWriteBatch(batch []byte) (int, error) {
	s.at("TryWriteBatch")
	return s.complete.TryWriteBatch(batch)
}

func (s *stuck) LocalAddr() net.Addr {
	s.at("LocalAddr")
	return s.complete.LocalAddr()
}

func (s *stuck) RemoteAddr() net.Addr {
	s.at("RemoteAddr")
	return s.complete.RemoteAddr()
}

func (s *stuck) Buffered() bool {
	s.at("Buffered")
	return s.complete.Buffered()
}

func (s *stuck) Receiving() int {
	s.at("Receiving")
	return s.complete.Receiving()
}

func (s *stuck) Progress() (received, sent uint64) {
	s.at("Progress")
	return s.complete.Progress()
}

func (s *stuck) SetReadDeadline(time.Time) error  { s.at("SetReadDeadline"); return nil }
func (s *stuck) SetWriteDeadline(time.Time) error { s.at("SetWriteDeadline"); return nil }

// drowsy has no effect in Close, and implements all optional interfaces.
type drowsy struct{ complete }

func (drowsy) Close() error { return nil }
