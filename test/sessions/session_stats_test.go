package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"expvar"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// Session stats have running and waiting calls, and their maxima.
func TestSessionStats_Counts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 2}))
		var wg sync.WaitGroup
		testkit.Calls(&wg, 7, func(int) { testkit.Held.Call(testkit.Background, dialled, "") })
		st := accepted.Stats()
		require.Equal(t, []int{7, 2, 5, 2, 5}, []int{st.Pipes, st.Running, st.Waiting, st.MostRunning, st.MostWaiting})
		require.EqualValues(t, 7, st.Served)
		require.EqualValues(t, 7, dialled.Stats().Made)
		require.Equal(t, 7, dialled.Stats().Pipes)
		close(h.End)
		wg.Wait()
		synctest.Wait()
		st = accepted.Stats()
		require.Equal(t, []int{0, 0, 0, 2, 5}, []int{st.Pipes, st.Running, st.Waiting, st.MostRunning, st.MostWaiting})
		require.Equal(t, 5, st.MostInbound.Messages)
		require.NotZero(t, st.MostOutbound.Messages)
	})
}

// Session stats have the time for which reading was paused.
func TestSessionStats_ReadPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, gate, running, _ := testkit.GatedService()
		p, s := testkit.StuckPeer(t, append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(10, 100)}))...)
		p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
		<-running
		for range 11 { // the last one meets a session that stands at its limit
			p.Send(&message.Block{Payload: []byte("x")})
		}
		synctest.Wait()
		require.EqualValues(t, 1, s.Stats().Stops)
		fakeclock.Sleep(17 * time.Second)
		close(gate)
		synctest.Wait()
		st := s.Stats()
		require.EqualValues(t, 1, st.Stops)
		require.Equal(t, 17*time.Second, st.Stopped)
	})
}

// TestFuncStats_Outcomes covers every kind of failure that the side of a handler sees.
func TestFuncStats_Outcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testkit.NewHolder()
		svc := asterisque.NewService()
		testkit.Held.Handle(svc, h.Serve)
		svc.Handle(7, "fail", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
			switch string(params) {
			case "panic":
				panic("kaboom")
			case "own":
				return nil, &asterisque.Abort{Code: 1234}
			case "negative":
				return nil, &asterisque.Abort{Code: -1}
			}
			return nil, testkit.ErrBroken
		})
		dialled, _ := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1, Waiting: 2}))
		for _, how := range []string{"panic", "own", "negative", "text", "text"} {
			_, err := dialled.Call(testkit.Background, 7, []byte(how))
			require.Error(t, err)
		}
		dialled.Call(testkit.Background, testkit.Held.Number(), []byte{0xff})
		ctx, cancel := context.WithCancel(testkit.Background)
		var wg sync.WaitGroup
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(ctx, dialled, "given up while it runs") })
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(ctx, dialled, "given up while it waits") })
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(testkit.Background, dialled, "expires", asterisque.WithTTL(time.Second)) })
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(testkit.Background, dialled, "refused") })
		fakeclock.Sleep(2 * time.Second)
		cancel()
		synctest.Wait()
		close(h.End)
		wg.Wait()
		synctest.Wait()
		stats := svc.Stats()
		require.Len(t, stats, 2)
		require.Equal(t, []any{uint16(7), "fail", uint64(5)}, []any{stats[0].Number, stats[0].Name, stats[0].Calls})
		require.Equal(t, map[string]uint64{"panicked": 1, "application": 2, "failed": 2}, stats[0].Failed)
		require.Equal(t, []any{uint16(60), "held", uint64(5)}, []any{stats[1].Number, stats[1].Name, stats[1].Calls})
		require.Equal(t, map[string]uint64{"bad parameters": 1, "canceled": 2, "expired": 1, "overloaded": 1}, stats[1].Failed)
	})
}

// Function stats have how long calls waited and ran.
func TestFuncStats_Times(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		slow := asterisque.Func[int, int](70, "slow")
		slow.Handle(svc, func(_ context.Context, n int) (int, error) {
			fakeclock.Sleep(time.Duration(n) * time.Second)
			return n, nil
		})
		dialled, _ := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { slow.Call(testkit.Background, dialled, 1) })
		}
		wg.Wait()
		synctest.Wait()
		f := svc.Stats()[0]
		require.EqualValues(t, 10, f.Ran.Timed)
		require.EqualValues(t, 10, f.Queued.Timed)
		require.InEpsilon(t, time.Second, f.Ran.P50, 1./7)
		require.InEpsilon(t, time.Second, f.Ran.P99, 1./7)
		require.InEpsilon(t, 4*time.Second, f.Queued.P50, 1./4, "one waits for each of those before it")
		require.InEpsilon(t, 9*time.Second, f.Queued.P99, 1./7)

		for range 6390 {
			slow.Call(testkit.Background, dialled, 0)
		}
		synctest.Wait()
		f = svc.Stats()[0]
		require.EqualValues(t, 6400, f.Calls)
		require.EqualValues(t, 64+(6400-64)/16, f.Ran.Timed, "the first ones, and then one of sixteen")
	})
}

// Stats can be read as JSON, and logged.
func TestStats_JSONAndLog(t *testing.T) {
	svc := testkit.EchoService()
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc), asterisque.WithID("there"))
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	other, _ := testkit.ConnectNodes(t, here, there)
	for _, s := range []*asterisque.Session{dialled, other} {
		_, err := testkit.Echo.Call(testkit.Background, s, "")
		require.NoError(t, err)
	}
	testkit.WantIdle(t, dialled, other, accepted)

	var asVar expvar.Var = expvar.Func(func() any { return there.Stats() })
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(asVar.String()), &got))
	require.Equal(t, "there", got["id"])
	require.EqualValues(t, 2, got["sessions"])
	total := got["total"].(map[string]any)
	require.EqualValues(t, 2, total["served"])
	for _, name := range []string{"pipes", "waiting", "running", "most_waiting", "most_running", "made", "inbound", "outbound", "most_inbound", "inbound_state", "stops", "stopped_ns", "parked", "holding"} {
		require.Contains(t, total, name)
	}
	for _, share := range []string{"calls", "nested", "served", "made", "large", "elastic"} {
		require.Contains(t, total["classes"].(map[string]any)[share], "promised")
	}
	for _, wait := range []string{"wait_window", "wait_opens", "wait_outbound"} {
		require.Contains(t, total[wait], "for_ns")
	}
	function := got["functions"].([]any)[0].(map[string]any)
	require.Equal(t, "echo", function["name"])
	require.EqualValues(t, 2, function["calls"])
	require.Contains(t, function["ran"], "p99_ns")
	require.JSONEq(t, there.Stats().String(), asVar.String())

	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	log.Info("session", "stats", accepted.Stats())
	log.Info("node", "stats", there.Stats())
	for _, want := range []string{"stats.pipes=0", "stats.served=1", "stats.sessions=2", "stats.total.served=2", `stats.classes.large="0 bytes held, 0 promised, of 4194816, 0 wait"`, `stats.total.wait_opens="0 now with 0 bytes, 0 times, 0s"`} {
		require.Contains(t, out.String(), want)
	}
}
