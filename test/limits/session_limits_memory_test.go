package limits

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// bounds are the settings that determine the memory of a session: see docs/limits.md.
type bounds struct {
	inbound, outbound int // bytes of the soft limits
	message           int // bytes of the largest message
	answers           int // bytes of what the handlers that run return
	calls             int // of both sides, those included that wait to be sent
}

// most returns the maximum memory of a session in bytes, by the formula of docs/limits.md.
func (b bounds) most() int {
	return 2*b.inbound + b.outbound + 3*b.message + b.answers + b.calls<<10 + 256<<10
}

// full is one side of a session that is about to reach all of its limits.
type full struct {
	sess *asterisque.Session
	wg   *sync.WaitGroup
	data []byte
}

const (
	fullSleep  = 1 + iota // keeps its parameters
	fullAnswer            // answers at the end with as many bytes as its parameters say
	fullBack              // calls back until there is no more room for calls within calls
	fullKeep              // takes a few Blocks, and no more
	fullSay               // sends Blocks until there is no more room
)

// fullService is the service of both sides. Its functions block until end is closed, and its
// answering functions until go_ is.
func fullService(data []byte, go_, end <-chan struct{}) *asterisque.Service {
	svc := asterisque.NewService()
	sleep := func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		select {
		case <-end:
		case <-ctx.Done():
		}
		return nil, nil
	}
	svc.Handle(fullSleep, "sleep", sleep)
	svc.Handle(fullAnswer, "answer", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		select {
		case <-go_:
		case <-ctx.Done():
		}
		n, err := strconv.Atoi(string(params))
		return data[:n], err
	})
	svc.Handle(fullBack, "back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		var wg sync.WaitGroup
		defer wg.Wait()
		for range 1000 {
			p, err := asterisque.SessionOf(ctx).Open(ctx, fullSleep, data[:30<<10])
			if err != nil {
				return nil, err
			}
			wg.Go(func() { p.Result(ctx) })
		}
		return nil, nil
	})
	svc.Handle(fullKeep, "keep", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for range 100 {
			b, err := p.Recv(ctx)
			if err != nil {
				return nil, err
			}
			b.Release()
		}
		return sleep(ctx, nil, nil)
	})
	svc.Handle(fullSay, "say", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for p.Send(ctx, data[:2000]) == nil {
		}
		return nil, nil
	})
	return svc
}

// call makes n calls in sequence, and does not wait for their results.
func (f *full) call(n, function int, params []byte, opts ...asterisque.CallOption) {
	for range n {
		f.wg.Go(func() { f.sess.Call(testkit.Background, uint16(function), params, opts...) })
	}
}

// stream opens n streams, and sends as much as each accepts.
func (f *full) stream(n, function int) {
	for range n {
		f.wg.Go(func() {
			p, err := f.sess.Open(testkit.Background, uint16(function), nil)
			if err != nil {
				return
			}
			for function == fullKeep && p.Send(testkit.Background, f.data[:2000]) == nil {
			}
			<-p.Done()
		})
	}
}

// TestLimits_MemoryOfThePage uses two programs that ask each other for more than there is room for,
// in every possible way, with peers that then do not read.
func TestLimits_MemoryOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/limits.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "2 × inbound + outbound + 3 × message + values + answers + 1 KiB × calls + 256 KiB\n")
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	synctest.Test(t, atAllLimits)
}

// atAllLimits makes two sessions reach all their limits.
func atAllLimits(t *testing.T) {
	const sleepers, streams, answerers, largest, answer = 6, 32, 40, 900 << 10, 64 << 10
	b := bounds{inbound: 8 << 20, outbound: 1 << 20, message: 1 << 20, answers: answerers * answer}
	soft := func(bytes int) limits.Limits { return limits.Limits{Soft: limits.Amount{Bytes: bytes}} }
	data, go_, end := make([]byte, 1<<20), make(chan struct{}), make(chan struct{})
	opts := []asterisque.Option{
		asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}), asterisque.WithService(fullService(data, go_, end)), asterisque.WithLimits(asterisque.Limits{Inbound: soft(b.inbound), Outbound: soft(b.outbound), MaxMessage: b.message}), asterisque.WithWorkers(asterisque.Workers{Session: sleepers + 2*streams + answerers + 1}),
	}
	here, there := asterisque.NewNode(opts...), asterisque.NewNode(opts...)
	dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
	var wg sync.WaitGroup
	sides := []*full{{dialled, &wg, data}, {accepted, &wg, data}}
	before := weightest.Heap()

	each := func(do func(f *full)) {
		for _, f := range sides {
			do(f)
		}
		synctest.Wait()
	}
	each(func(f *full) { f.stream(streams, fullKeep) })
	each(func(f *full) { f.stream(streams, fullSay) })
	each(func(f *full) { f.call(answerers, fullAnswer, []byte(strconv.Itoa(answer))) })
	each(func(f *full) { f.call(1, fullBack, nil) })
	each(func(f *full) { f.call(sleepers, fullSleep, data[:largest]) })
	each(func(f *full) { f.call(1000, fullSleep, data[:20<<10]) })
	for _, f := range sides {
		f.sess.StopReading()
	}
	// The reader of the session stops here.
	each(func(f *full) { f.call(1, fullSleep, nil, asterisque.WithPriority(1)) })
	close(go_)
	synctest.Wait()

	bound := 0
	for _, f := range sides {
		st := f.sess.Stats()
		b.calls = st.Pipes + st.WaitOpens.Now
		bound += b.most()
		require.Greater(t, st.Inbound.Bytes, b.inbound/4)
		require.Greater(t, st.Holding, b.inbound*3/4)
		require.GreaterOrEqual(t, st.Outbound.Bytes, b.outbound)
		require.NotZero(t, st.Parked)
		require.NotZero(t, st.WaitOpens.Now)
		require.Zero(t, st.Stops, "no side has received more than its room")
	}
	grown := weightest.HeldSince(before, bound)
	t.Logf("%d bytes of heap, of at most %d", grown, bound)
	require.LessOrEqual(t, grown, bound)
	require.Greater(t, grown, bound/3, "the limits have been reached")
	runtime.KeepAlive(data)

	close(end)
	here.Close()
	there.Close()
	wg.Wait()
}
