// Package attack provides the common parts of the tests named TestAttack…: printed bounds, and
// honest peers beside the attack.
package attack

import (
	"context"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// printed reports whether figures are printed, which is the case with -run Attack. They are the
// measured column of SECURITY.md.
func printed() bool {
	return strings.Contains(flag.Lookup("test.run").Value.String(), "Attack")
}

// Bounded requires that the measured value of an attack is within its bound.
func Bounded(t testing.TB, what string, measured, bound int) {
	t.Helper()
	if printed() {
		fmt.Printf("%-72s %12d of %12d\n", what, measured, bound)
	}
	require.LessOrEqual(t, measured, bound, what)
}

// Honest has n honest peers connect and call, atOnce of them concurrently, while an attack is under
// way. It returns the number of peers that succeeded. A peer that fails tries again, because the
// handshake of a busy machine may time out. The limit for all tries together is 3*n.
func Honest(t testing.TB, n, atOnce int, connect func() error) int {
	t.Helper()
	begin := time.Now()
	var in, tries atomic.Int64
	peers := make(chan struct{}, n)
	for range n {
		peers <- struct{}{}
	}
	close(peers)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for range peers {
				for tries.Add(1) <= 3*int64(n) {
					err := connect()
					if err == nil {
						in.Add(1)
						break
					}
					t.Log(err)
				}
			}
		})
	}
	all.Wait()
	if printed() {
		what := fmt.Sprintf("the honest handshakes beside, and a call in each, %d at once, took", atOnce)
		fmt.Printf("%-72s %12v, %d tries\n", what, time.Since(begin).Round(time.Millisecond), tries.Load())
	}
	return int(in.Load())
}

// Silent opens connections that send only first, up to 1,300 a second, and keeps the last 4,000 of
// them open. stop ends that, and returns the number of connections.
func Silent(dial func() (net.Conn, error), first string) (stop func() (dials int)) {
	ctx, cancel := context.WithCancel(context.Background())
	var dials atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { silent(ctx, dial, first, &dials) })
	}
	return func() int {
		cancel()
		all.Wait()
		return int(dials.Load())
	}
}

func silent(ctx context.Context, dial func() (net.Conn, error), first string, dials *atomic.Int64) {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c, err := dial()
		if err != nil {
			continue
		}
		c.Write([]byte(first))
		dials.Add(1)
		if conns = append(conns, c); len(conns) > 1000 {
			conns[0].Close()
			conns = conns[1:]
		}
	}
}

// DialFrom connects over TCP from an address of this machine.
func DialFrom(from, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return d.Dial("tcp", to)
}
