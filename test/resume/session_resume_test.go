package resume

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// Cuts lose, repeat and reorder nothing.
func TestCuts_NothingLost(t *testing.T) {
	cuts := 100
	if *testkit.Soak {
		cuts = 1000
	}
	svc, ran := onceService()
	conn, wires := testkit.Lasting(t, svc, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	require.True(t, conn.Session().Resumable())
	requireOnceDespiteCuts(t, conn, ran, wires.Cut, cuts)
}

var (
	once = asterisque.Func[uint64, uint64](1, "once")
	sum  = asterisque.Stream[int, uint64, uint64, [32]byte](2, "sum")
)

// onceService offers once, which counts in ran the runs of each id, and sum.
func onceService() (svc *asterisque.Service, ran *sync.Map) {
	svc, ran = asterisque.NewService(), new(sync.Map)
	once.Handle(svc, func(_ context.Context, id uint64) (uint64, error) {
		n, _ := ran.LoadOrStore(id, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		return id * 3, nil
	})
	sum.Handle(svc, func(ctx context.Context, _ int, p *asterisque.Pipe[uint64, uint64]) ([32]byte, error) {
		h := sha256.New()
		for v, err := range p.All(ctx) {
			if err != nil {
				return [32]byte{}, err
			}
			h.Write(binary.BigEndian.AppendUint64(nil, v))
			if err := p.Send(ctx, v+1); err != nil {
				return [32]byte{}, err
			}
		}
		return [32]byte(h.Sum(nil)), nil
	})
	return svc, ran
}

// requireOnceDespiteCuts makes many calls and streams while cut is called the given number of
// times, and requires that each call ran once, and that the streams carried the right values.
func requireOnceDespiteCuts(t *testing.T, conn *asterisque.Connection, ran *sync.Map, cut func(), cuts int) {
	callers, streams := 1000, 10
	ctx, stop := context.WithCancel(testkit.Background)
	defer stop()
	var work sync.WaitGroup
	var ids, answered atomic.Uint64
	for range callers {
		work.Go(func() {
			for ctx.Err() == nil {
				id := ids.Add(1)
				got, err := once.Call(testkit.Background, conn, id)
				if err != nil || got != id*3 {
					t.Errorf("call %d: %d, %v", id, got, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for n := range streams {
		work.Go(func() {
			if err := checkStream(ctx, conn, sum); err != nil {
				t.Errorf("stream %d: %v", n, err)
			}
		})
	}
	for range cuts {
		before := answered.Load()
		time.Sleep(rand.N(5 * time.Millisecond)) //nolint:forbidigo // at a random moment
		cut()
		require.Eventually(t, func() bool { return answered.Load() > before+10 || t.Failed() }, testkit.Patience, 100*time.Microsecond)
		require.False(t, t.Failed())
	}
	stop()
	work.Wait()
	require.EqualValues(t, ids.Load(), answered.Load())
	for id := range ids.Load() {
		n, ok := ran.Load(id + 1)
		require.True(t, ok, "call %d never ran", id+1)
		require.EqualValues(t, 1, n.(*atomic.Int64).Load(), "call %d", id+1)
	}
	require.Eventually(t, func() bool { return conn.Session().Stats().Outbound == limits.Amount{} }, testkit.Patience, time.Millisecond, "all is acknowledged")
}

// checkStream sends numbers until ctx ends, and checks that each number returns in order and that
// the callee has received the same numbers.
func checkStream(ctx context.Context, conn *asterisque.Connection, sum asterisque.StreamFunction[int, uint64, uint64, [32]byte]) error {
	call, err := sum.Open(testkit.Background, conn, 0)
	if err != nil {
		return err
	}
	h := sha256.New()
	sent := make(chan error, 1)
	go func() {
		defer close(sent)
		for v := uint64(0); ctx.Err() == nil; v++ {
			h.Write(binary.BigEndian.AppendUint64(nil, v))
			if err := call.Send(testkit.Background, v); err != nil {
				sent <- err
				return
			}
		}
		sent <- call.CloseSend()
	}()
	next := uint64(1)
	for v, err := range call.All(testkit.Background) {
		if err != nil {
			return err
		}
		if v != next {
			return fmt.Errorf("%d came, %d is next", v, next)
		}
		next++
	}
	if err := <-sent; err != nil {
		return err
	}
	got, err := call.Result(testkit.Background)
	if err != nil {
		return err
	}
	if [32]byte(h.Sum(nil)) != got {
		return errors.New("the callee has got something else")
	}
	return nil
}

// hashStream is a handler that returns the SHA-256 of the bytes of its caller.
func hashStream(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
	h := sha256.New()
	if _, err := io.Copy(h, stream.NewReader(p)); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// A bulk stream continues after cuts.
func TestCuts_BulkStream(t *testing.T) {
	svc := asterisque.NewService()
	total := 32 << 20
	svc.Handle(1, "hash", hashStream)
	conn, wires := testkit.Lasting(t, svc, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	p, err := conn.Open(testkit.Background, 1, nil)
	require.NoError(t, err)
	w := stream.NewWriter(p)
	rnd := rand.NewChaCha8([32]byte{1})
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for sent := 0; sent < total; sent += len(buf) {
		if sent%(4<<20) == 0 {
			wires.Cut()
		}
		rnd.Read(buf)
		h.Write(buf)
		_, err := w.Write(buf)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	got, err := p.Result(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, h.Sum(nil), got)
}
