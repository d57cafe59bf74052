package wiretest_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque/wire/wiretest"
	"github.com/stretchr/testify/require"
)

const (
	mbit   = 1e6 / 8 // bytes a second
	mbit10 = 10 * mbit
	kib    = 1 << 10
	mib    = 1 << 20
)

// linkBed is the fixture of a test of a Link, in a synctest bubble.
type linkBed struct {
	*testing.T
	*wiretest.Link
	begin time.Time
	ends  []net.Conn
}

// alike is the LinkConfig of a Link with the same Lane in both directions.
func alike(l wiretest.Lane) wiretest.LinkConfig { return wiretest.LinkConfig{Out: l, In: l} }

func overLink(t *testing.T, cfg wiretest.LinkConfig, test func(b *linkBed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &linkBed{T: t, Link: wiretest.NewLink(cfg), begin: time.Now()}
		defer func() {
			for _, c := range b.ends {
				c.Close()
			}
		}()
		test(b)
	})
}

// pipe returns a connection, which is closed at the end of the test.
func (b *linkBed) pipe() (near, far net.Conn) {
	near, far = b.Pipe()
	b.ends = append(b.ends, near, far)
	return near, far
}

// flood writes to c until it is closed.
func (b *linkBed) flood(c net.Conn) {
	go func() {
		for junk := make([]byte, 64*kib); ; {
			if _, err := c.Write(junk); err != nil {
				return
			}
		}
	}()
}

// count is the number of bytes read from a connection.
type count struct {
	mu sync.Mutex
	n  int64 // guarded by mu
}

func (c *count) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// drain reads from c until it is closed.
func (b *linkBed) drain(c net.Conn) *count {
	got := new(count)
	go func() {
		for buf := make([]byte, 64*kib); ; {
			n, err := c.Read(buf)
			got.mu.Lock()
			got.n += int64(n)
			got.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return got
}

// within requires that got differs from want by at most the fraction part.
func within(t require.TestingT, want, got, part float64, what string) {
	require.InDelta(t, want, got, want*part, what)
}

// took returns the time in which n bytes reach the other end.
func (b *linkBed) took(from, to net.Conn, n int) time.Duration {
	begin := time.Now()
	go from.Write(make([]byte, n))
	_, err := io.ReadFull(to, make([]byte, n))
	require.NoError(b, err)
	return time.Since(begin)
}
