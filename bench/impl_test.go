package main

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soak makes some tests run for the full time of their figures.
var soak = flag.Bool("soak", false, "run the long versions of the tests that have one")

// TestImpl_EachWorkload runs all cells, each for a short time and with fewer callers, streams,
// sessions and pipes. Of the cells that differ only in these numbers it runs one. Streams check
// that all data was received; calls check that the reply equals the request.
func TestImpl_EachWorkload(t *testing.T) {
	all := func(*workload, int, *impl) bool { return true }
	most, d := 8, 5*time.Millisecond
	if *soak {
		most, d = 32, 10*time.Millisecond
	}
	ran := map[string]bool{}
	for _, c := range cells(implementations(), all) {
		c.callers = min(c.callers, most)
		if ran[c.String()] {
			continue
		}
		ran[c.String()] = true
		d, name := d, c.String()
		if c.workload.path != nil {
			c.workload, d = overShortPath(c.workload), 3*d
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the test ignores the figures
			r, end, err := measureCell(c, d)
			defer end()
			require.NoError(t, err)
			require.Empty(t, r.Error)
			require.True(t, c.workload.headline(&r).known())
			if c.workload.unit != "B/pipe" && c.workload.unit != "B/session" && c.workload.path == nil {
				// these few are lost in the noise, and the number that arrives in this short time
				// is random
				require.Positive(t, float64(c.workload.headline(&r)))
			}
		})
	}
}

// overShortPath returns a workload with a path that does not slow tests down.
func overShortPath(w *workload) *workload {
	short := *w
	short.path = &pathSpec{roundTrip: time.Millisecond, rate: 1000 * mbit}
	return &short
}

// Workloads that an implementation does not support are left out.
func TestImpl_UnsupportedLeftOut(t *testing.T) {
	present := map[string]bool{}
	for _, c := range cells(implementations(), func(*workload, int, *impl) bool { return true }) {
		present[c.String()] = true
	}
	for name, want := range map[string]bool{
		"call-64B/1024/asterisque":          true,
		"call-64B/1024/quic":                true,
		"call-64B/1/floor-pingpong":         true,
		"call-64B/8/floor-pingpong":         false, // it has one caller
		"call-64B/1/floor-copy":             false,
		"bulk-100/100/floor-copy":           true,
		"msg-1KiB/1/floor-copy":             false,
		"msg-1KiB/1/floor-pipelined":        true,
		"connect/1/floor-pipelined":         false,
		"call-struct/64/yamux":              false,
		"call-struct/64/netrpc":             true,
		"call-struct/64/asterisque-json":    true,
		"call-struct/64/asterisque-msgpack": true,
		"call-64B/64/asterisque-msgpack":    false, // bytes need no codec
		"connect/1/asterisque-msgpack":      false,
		"bulk-1/1/netrpc":                   false,
		"bulk-1/1/drpc":                     true,
		"bulk-100/100/drpc":                 false, // one stream at a time
		"urgent/1/drpc":                     false,
		"urgent/1/floor-two-sockets":        true,
		"bulk-1/1/floor-two-sockets":        false,
		"call-64B/1/floor-two-sockets":      false,
		"urgent/1/ttrpc":                    true,
		"stuck-reader/1/ttrpc":              false,
		"both-ways/1024/asterisque":         true,
		"both-ways/1024/smux":               true,
		"both-ways/1024/grpc":               false,
		"call-64B/1/asterisque-tls":         true,
		"idle-pipes/10000/connect-go":       true,

		"call-64B/1/grpc-defaults":                    false, // it is for paths
		"path-stream-50ms-1Gbit/1/asterisque":         true,
		"path-stream-50ms-1Gbit/1/asterisque-tls":     false,
		"path-stream-50ms-1Gbit/1/floor-copy":         true,
		"path-stream-50ms-1Gbit/1/grpc":               false, // grpc-defaults is
		"path-stream-50ms-1Gbit/1/grpc-defaults":      true,
		"path-urgent-4MiB/1/quic-wide":                true,
		"path-urgent-4MiB/1/floor-two-sockets":        true,
		"path-first-50ms-100Mbit/1/floor-pingpong":    true,
		"path-call-64B-50ms-1Gbit/64/yamux-wide":      true,
		"path-call-64B-50ms-1Gbit/64/floor-pipelined": true,
	} {
		require.Equal(t, want, present[name], name)
	}
}

// A wrong reply is an error.
func TestEchoed_WrongReply(t *testing.T) {
	request := payload(64)
	require.NoError(t, echoed(payload(64), request))
	require.Error(t, echoed(payload(63), request))
	require.Error(t, echoed(nil, request))
	require.Error(t, echoed(append(payload(64), request[56:]...), request), "it begins and ends well, and is longer")
	for _, i := range []int{0, 63} {
		reply := payload(64)
		reply[i]++
		require.Error(t, echoed(reply, request))
	}
	require.NoError(t, checkField(17, "shipping_address"))
	require.Error(t, checkField(17, ""))
	require.Error(t, checkField(0, "shipping_address"))
}

// Lost bytes of a stream are an error.
func TestStreams_LostBytes(t *testing.T) {
	require.NoError(t, finishAll([]sender{fakeSender{n: 2}, fakeSender{n: 3}}, 5))
	require.ErrorContains(t, finishAll([]sender{fakeSender{n: 2}, fakeSender{n: 3}}, 6), "of 6 bytes sent, 5 were received")
	require.ErrorContains(t, finishAll([]sender{fakeSender{n: 2}, fakeSender{err: errors.New("cut")}}, 2), "cut")
}

type fakeSender struct {
	n   int64
	err error
}

func (s fakeSender) send([]byte) error      { return nil }
func (s fakeSender) finish() (int64, error) { return s.n, s.err }
