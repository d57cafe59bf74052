package tunnel_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/tunnel"
)

var (
	never = time.Time{}
	past  = time.Unix(1, 0)
)

// wantTimeout requires that err is the error of an exceeded deadline.
func wantTimeout(t *testing.T, err error) {
	t.Helper()
	wantError(t, os.ErrDeadlineExceeded, err)
	timeout, ok := err.(net.Error)
	require.True(t, ok)
	require.True(t, timeout.Timeout())
}

// A past deadline fails at once.
func TestDeadline_Past(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		write(t, there, "it waits")
		synctest.Wait()
		require.NoError(t, here.SetDeadline(past))
		for range 2 {
			_, err := here.Read(make([]byte, 1))
			wantTimeout(t, err)
			_, err = here.WriteTo(io.Discard)
			wantTimeout(t, err)
			n, err := here.Write(make([]byte, 100_000))
			wantTimeout(t, err)
			require.Zero(t, n)
			_, err = here.ReadFrom(zeros{})
			wantTimeout(t, err)
		}
		require.NoError(t, here.SetDeadline(never))
		wantRead(t, here, "it waits")
		write(t, here, "and so on")
		wantRead(t, there, "and so on")
	})
}

// A future deadline ends a wait.
func TestDeadline_Future(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		for _, after := range []time.Duration{time.Second, time.Minute} {
			begin := time.Now()
			require.NoError(t, here.SetReadDeadline(begin.Add(after)))
			_, err := here.Read(make([]byte, 1))
			wantTimeout(t, err)
			require.Equal(t, after, time.Since(begin))

			require.NoError(t, here.SetWriteDeadline(time.Now().Add(after)))
			_, err = here.Write(make([]byte, 10<<20))
			wantTimeout(t, err)
			require.Equal(t, 2*after, time.Since(begin))
		}
		require.NoError(t, here.SetReadDeadline(time.Now().Add(time.Second)))
		write(t, there, "in time")
		wantRead(t, here, "in time")
	})
}

// A moved deadline counts for waiting calls.
func TestDeadline_Moved(t *testing.T) {
	both(t, func(t *testing.T, here, _ *tunnel.Conn) {
		for name, c := range map[string]struct {
			first, then, want time.Duration // 0: none
		}{
			"the first one":  {0, time.Second, time.Second},
			"earlier":        {time.Hour, time.Second, time.Second},
			"later":          {time.Second, time.Hour, time.Hour},
			"in the past":    {time.Hour, -time.Second, 500 * time.Millisecond},
			"from the start": {time.Second, time.Second, time.Second},
		} {
			begin := time.Now()
			at := func(d time.Duration) time.Time {
				if d == 0 {
					return never
				}
				return begin.Add(d)
			}
			require.NoError(t, here.SetDeadline(at(c.first)))
			errs := make(chan error)
			for range 3 {
				go func() { _, err := here.Read(make([]byte, 1)); errs <- err }()
				go func() { _, err := here.Write(make([]byte, 10<<20)); errs <- err }()
			}
			fakeclock.Sleep(500 * time.Millisecond)
			require.Empty(t, errs, name)
			require.NoError(t, here.SetDeadline(at(c.then)))
			for range 6 {
				wantTimeout(t, <-errs)
			}
			require.Equal(t, c.want, time.Since(begin), name)
		}
	})
}

// A removed deadline ends nothing.
func TestDeadline_Removed(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		require.NoError(t, here.SetDeadline(time.Now().Add(time.Second)))
		read := make(chan error)
		go func() { _, err := here.Read(make([]byte, 1)); read <- err }()
		synctest.Wait()
		require.NoError(t, here.SetDeadline(never))
		fakeclock.Sleep(time.Hour)
		require.Empty(t, read)
		write(t, there, "x")
		require.NoError(t, <-read)
	})
}

// Each direction has its own deadline.
func TestDeadline_EachDirection(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		require.NoError(t, here.SetReadDeadline(past))
		write(t, here, "x")
		wantRead(t, there, "x")
		require.NoError(t, here.SetReadDeadline(never))
		require.NoError(t, here.SetWriteDeadline(past))
		write(t, there, "y")
		wantRead(t, here, "y")
	})
}

// Deadlines lose, repeat and reorder nothing.
func TestDeadline_NothingLost(t *testing.T) {
	for _, size := range []int{0, 1000, 31 << 10, 40 << 10, 100_000} { // 0 is ReadFrom
		both(t, func(t *testing.T, here, there *tunnel.Conn) {
			content := noise(1 << 20)
			var got bytes.Buffer
			done := make(chan struct{})
			go func() { // reads as slowly as makes deadlines pass
				defer close(done)
				room := make([]byte, 5000)
				for {
					there.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
					n, err := there.Read(room)
					got.Write(room[:n])
					if err == io.EOF {
						return
					}
					fakeclock.Sleep(time.Second)
				}
			}()
			passed := 0
			for rest := content; len(rest) > 0; {
				here.SetWriteDeadline(time.Now().Add(700 * time.Millisecond))
				n, err := int64(0), error(nil)
				if size == 0 {
					n, err = io.CopyN(here, bytes.NewReader(rest), int64(len(rest)))
				} else {
					var k int
					k, err = here.Write(rest[:min(size, len(rest))])
					n = int64(k)
				}
				if err != nil {
					wantTimeout(t, err)
					passed++
				}
				rest = rest[n:]
			}
			require.NoError(t, here.Close())
			<-done
			require.True(t, bytes.Equal(content, got.Bytes()))
			require.Positive(t, passed, "there were deadlines that passed")
		})
	}
}
