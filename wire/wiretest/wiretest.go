// Package wiretest tests implementations of [wire.Wire]. The author of a Wire writes
//
//	func TestWire(t *testing.T) {
//		wiretest.Run(t, func(t *testing.T) (a, b wire.Wire) {
//		… // connect two wires, and register further cleanup with t.Cleanup
//		})
//	}
//
// If the test passes (with -race, too), a session can rely on the Wire: every frame arrives, whole
// and in order, and no method blocks longer than it should. A failure names the fault: "frame 20000
// is missing", or the method that has not returned, with the stack of its goroutine.
//
// Application authors can test connection failures: [Faulty] makes any Wire slow, cuts, truncates,
// corrupts, stalls or half-opens it, [FaultyConn] does so with the stream of bytes below a Wire,
// and a [Proxy] with TCP connections between unmodified programs.
package wiretest

import (
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
)

// Run tests a Wire. It calls pair once per subtest for the two ends of a new connection, and closes
// both ends after the subtest. The optional interfaces of an end ([wire.BatchWriter],
// [wire.VectorWriter], [wire.TryWriter], [wire.Buffered], [wire.Meter]) are tested as well, and so
// are the deadlines of a [net.Conn] if an end has them. An end with only some methods of such an
// interface is reported: a session would not use them.
//
// A subtest fails if it leaves a goroutine behind; so nothing else should be running, such as
// parallel tests.
//
// A Wire that hangs fails. A method that may not block, or that Close has to wake, has ten seconds
// to return; one that carries frames has thirty. The failure names the method that has not
// returned, with the stack of its goroutine; Run then skips the remaining checks, and returns. It
// does not wait for pair and its cleanups: neither should depend on a Close that returns.
func Run(t *testing.T, pair func(t *testing.T) (a, b wire.Wire)) {
	runAll(t, pair, usual)
}

var usual = checkPatience{carry: 30 * time.Second, end: 10 * time.Second}

func runAll(t *testing.T, pair func(t *testing.T) (a, b wire.Wire), p checkPatience) {
	hung := false
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.over(t, pair, p, &hung) })
	}
}

// over runs the check over a new pair, unless a method hangs already.
func (c check) over(t *testing.T, pair func(t *testing.T) (a, b wire.Wire), p checkPatience, hung *bool) {
	if *hung {
		t.Skip("a method of the Wire has not returned in a check before")
	}
	leak.Check(hangGuard{t, hung})
	a, b := pair(t)
	r := &rig{T: t, a: a, b: b, checkPatience: p, hung: hung}
	t.Cleanup(r.closeBoth)
	if c.applies != nil && !(c.applies(a) && c.applies(b)) {
		t.Skip("the Wire does not have this optional interface")
	}
	c.run(r)
}

// hangGuard is a test that skips its cleanups if a method hangs: its goroutines remain, which was
// reported already.
type hangGuard struct {
	testing.TB
	hung *bool
}

func (u hangGuard) Cleanup(f func()) {
	u.TB.Cleanup(func() {
		if !*u.hung {
			f()
		}
	})
}

// check is one requirement for a Wire.
type check struct {
	name    string
	run     func(r *rig)
	applies func(w wire.Wire) bool // nil: to every Wire
}

var checks = []check{
	{"frames of all sizes arrive whole", sizes, nil},
	{"empty frames are frames", emptyFrames, nil},
	{"frames keep their order in both directions at once", order, nil},
	{"both directions work under load", load, nil},
	{"none of many frames is lost, doubled or moved", manyBy(inFrames), nil},
	{"a frame as large as allowed is accepted", exactlyMax, nil},
	{"a frame larger than allowed is refused", overMax, nil},
	{"buffers are not kept after WriteFrames", buffersNotKept, nil},
	{"a frame stays valid until the next ReadFrame", frameStaysValid, nil},
	{"a peer that does not read stops the writer", backPressure, nil},
	{"Close ends a ReadFrame that waits", closeEndsRead, nil},
	{"Close ends a WriteFrames that waits", closeEndsWrite("WriteFrames", byFrames), nil},
	{"no other method waits for a ReadFrame and a WriteFrames that wait", othersDoNotWait, nil},
	{"Close may be called repeatedly and concurrently", closeTwice, nil},
	{"after Close everything fails with net.ErrClosed", afterClose, nil},
	{"the peer's Close is io.EOF behind all frames", peerClose, nil},
	{"the peer's Close ends a WriteFrames that waits", peerCloseEndsWrite, nil},
	{"addresses are there and stay", addresses, nil},
	{"WriteBatch writes many frames", writeBatch, has[wire.BatchWriter]},
	{"WriteBatch does not keep the batch", batchNotKept, has[wire.BatchWriter]},
	{"none of many frames is lost, doubled or moved by WriteBatch", manyBy(inBatches), has[wire.BatchWriter]},
	{"Close ends a WriteBatch that waits", closeEndsWrite("WriteBatch", byBatch), has[wire.BatchWriter]},
	{"WriteVector writes frames in pieces", writeVector, has[wire.VectorWriter]},
	{"WriteVector does not keep the pieces", vectorNotKept, has[wire.VectorWriter]},
	{"none of many frames is lost, doubled or moved by WriteVector", manyBy(inVectors), has[wire.VectorWriter]},
	{"Close ends a WriteVector that waits", closeEndsWrite("WriteVector", byVector), has[wire.VectorWriter]},
	{"TryWriteBatch never waits", tryWriteBatch, has[wire.TryWriter]},
	{"none of many frames is lost, doubled or moved by TryWriteBatch", manyBy(inTries), has[wire.TryWriter]},
	{"Buffered is right", buffered, has[wire.Buffered]},
	{"Keep leaves a frame alone", keep, has[wire.Buffered]},
	{"Progress counts what crosses", progress, has[wire.Meter]},
	{"Receiving is the memory of half a frame", receiving, has[wire.Meter]},
	{"optional methods make whole interfaces", wholeInterfaces, nil},
	{"a read deadline ends ReadFrame and loses nothing", readDeadline, has[deadliner]},
	{"a write deadline ends WriteFrames", writeDeadline, has[deadliner]},
}

func has[I any](w wire.Wire) bool {
	_, ok := w.(I)
	return ok
}
