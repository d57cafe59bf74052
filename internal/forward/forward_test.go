package forward_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/forward"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
)

func TestMain(m *testing.M) { leak.Main(m) }

const largest = 1 << 20

// connected returns the two ends of a Wire of the scheme of url.
func connected(t *testing.T, url string) (client, server wire.Wire) {
	t.Helper()
	ln, err := wire.Listen(t.Context(), url, wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	dialled := make(chan wire.Wire, 1)
	go func() { // ends with the listener
		w, err := wire.Dial(context.Background(), ln.URL(), wire.Options{})
		if err == nil {
			dialled <- w
		}
	}()
	server, err = ln.Accept()
	require.NoError(t, err)
	client = <-dialled
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// between returns two Wires connected by a relay, and the error of the relay.
func relayState(t *testing.T, first, second string) (a, b wire.Wire, end <-chan error) {
	t.Helper()
	a, near := connected(t, first)
	far, b := connected(t, second)
	over := make(chan error, 1)
	go func() {
		over <- forward.Between(slog.Default(), time.Hour, forward.Side{Wire: near, Largest: largest}, forward.Side{Wire: far, Largest: largest})
	}() // ends with a Wire
	return a, b, over
}

// bare is a Wire with only the five methods of the interface.
type bare struct{ wire.Wire }

func TestRelay_FramesBothWays(t *testing.T) {
	for _, schemes := range [][2]string{
		{"tcp://127.0.0.1:0", "tcp://127.0.0.1:0"}, {"mem://relay-a", "tcp://127.0.0.1:0"}, {"tcp://127.0.0.1:0", "mem://relay-b"},
	} {
		t.Run(fmt.Sprint(schemes), func(t *testing.T) {
			a, b, end := relayState(t, schemes[0], schemes[1])
			requireFrames(t, a, b)
			requireFrames(t, b, a)
			require.NoError(t, a.Close())
			require.NoError(t, <-end)
			_, err := b.ReadFrame(largest)
			require.Error(t, err)
		})
	}
}

func TestRelay_BareWires(t *testing.T) {
	a, near := connected(t, "tcp://127.0.0.1:0")
	far, b := connected(t, "tcp://127.0.0.1:0")
	end := make(chan error, 1)
	go func() {
		end <- forward.Between(slog.Default(), time.Hour, forward.Side{Wire: bare{near}, Largest: largest}, forward.Side{Wire: bare{far}, Largest: largest})
	}() // ends with a Wire
	requireFrames(t, a, b)
	require.NoError(t, b.Close())
	require.NoError(t, <-end)
}

// requireFrames requires that frames written at one end arrive at the other one: many small frames,
// empty ones, and some about as large as a batch and as the limit.
func requireFrames(t *testing.T, from, to wire.Wire) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var sent [][]byte
	for range 2000 {
		sent = append(sent, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(100)))
	}
	for _, n := range []int{32<<10 - 5, 32<<10 - 4, 32<<10 - 3, 0, 100 << 10, largest, 1} {
		sent = append(sent, bytes.Repeat([]byte{byte(n)}, n))
	}
	written := make(chan error, 1)
	go func() { // ends when all is read, or the Wire is closed
		for i := 0; i < len(sent); i += 50 {
			if err := from.WriteFrames(sent[i:min(i+50, len(sent))]); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for i, want := range sent {
		got, err := to.ReadFrame(largest)
		require.NoError(t, err)
		require.Equal(t, want, got, i)
	}
	require.NoError(t, <-written)
}

func TestRelay_BackPressure(t *testing.T) {
	a, b, end := relayState(t, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0")
	frame := [][]byte{make([]byte, largest)}
	var written atomic.Int64
	over := make(chan error, 1)
	go func() { // ends with the Wire
		for {
			if err := a.WriteFrames(frame); err != nil {
				over <- err
				return
			}
			written.Add(1)
		}
	}()
	last := int64(-1)
	require.Eventually(t, func() bool {
		n := written.Load()
		defer func() { last = n }()
		return n == last
	}, time.Minute, 300*time.Millisecond, "it stands")
	require.Less(t, written.Load(), int64(256), "only sockets hold the written bytes")
	for range written.Load() + 1 {
		_, err := b.ReadFrame(largest)
		require.NoError(t, err, "nothing is lost")
	}
	a.Close()
	require.ErrorIs(t, <-over, net.ErrClosed)
	b.Close()
	<-end
}

func TestRelay_FrameTooLarge(t *testing.T) {
	a, b, end := relayState(t, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0")
	require.NoError(t, a.WriteFrames([][]byte{[]byte("before")}))
	got, err := b.ReadFrame(largest)
	require.NoError(t, err)
	require.Equal(t, "before", string(got))
	go a.WriteFrames([][]byte{make([]byte, largest+1)}) // ends with the Wire
	require.ErrorIs(t, <-end, wire.ErrFrameTooLarge)
	for _, w := range []wire.Wire{a, b} {
		_, err := w.ReadFrame(largest)
		require.Error(t, err)
	}
}

func TestRelay_EndsBoth(t *testing.T) {
	for name, end := range map[string]func(a, b wire.Wire) wire.Wire{
		"the first":  func(a, b wire.Wire) wire.Wire { a.Close(); return b },
		"the second": func(a, b wire.Wire) wire.Wire { b.Close(); return a },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, over := relayState(t, "tcp://127.0.0.1:0", "mem://relay-"+name[4:])
			left := end(a, b)
			_, err := left.ReadFrame(largest)
			require.Error(t, err)
			if err := <-over; err != nil {
				require.False(t, errors.Is(err, wire.ErrFrameTooLarge))
			}
		})
	}
}

func TestRelay_BlockedSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, near := wire.Pipe()
		far, b := wire.Pipe()
		begin, end := time.Now(), make(chan error, 1)
		go func() {
			end <- forward.Between(slog.Default(), time.Minute, forward.Side{Wire: near, Largest: largest}, forward.Side{Wire: far, Largest: largest})
		}() // ends with a Wire
		full := make([]byte, 128<<10)
		require.NoError(t, b.WriteFrames([][]byte{full}))
		require.NoError(t, b.Close(), "which is not read")
		require.ErrorContains(t, <-end, "takes nothing")
		require.Equal(t, time.Minute+8*time.Second, time.Since(begin))
		require.NoError(t, a.Close())
	})
}

func TestRelay_SilentContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, near := wire.Pipe()
		far, b := wire.Pipe()
		end := make(chan error, 1)
		go func() {
			end <- forward.Between(slog.Default(), time.Minute, forward.Side{Wire: near, Largest: largest}, forward.Side{Wire: far, Largest: largest})
		}() // ends with a Wire
		for range 3 {
			require.NoError(t, a.WriteFrames([][]byte{{1}, {2}}))
			for range 2 {
				_, err := b.ReadFrame(largest)
				require.NoError(t, err)
			}
			fakeclock.Sleep(24 * time.Hour)
		}
		require.NoError(t, b.Close())
		require.NoError(t, <-end)
	})
}

// quits is a Wire that ends the goroutine of its reader.
type quits struct{ wire.Wire }

func (quits) ReadFrame(int) ([]byte, error) { runtime.Goexit(); return nil, nil }

func TestRelay_WireEndsGoroutine(t *testing.T) {
	a, near := wire.Pipe()
	far, b := wire.Pipe()
	log := slog.New(slog.DiscardHandler)
	require.ErrorContains(t, forward.Between(log, time.Hour, forward.Side{Wire: quits{near}, Largest: largest}, forward.Side{Wire: far, Largest: largest}), "ended its goroutine")
	for _, w := range []wire.Wire{a, b} {
		_, err := w.ReadFrame(largest)
		require.Error(t, err)
	}
}
