package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// killedTaker names the NATS server to the process that is killed, which is this test again.
const killedTaker = "ASTERISQUE_TEST_KILLED_TAKER"

// TestTheKilledTaker is that process: a node that takes a posted call, says so, and goes on with it
// until it is killed.
func TestTheKilledTaker(t *testing.T) {
	url := os.Getenv(killedTaker)
	if url == "" {
		t.Skip("it is started by TestOfAPostedCallWhoseNodeIsKilledNobodyKnowsWhetherItHasRun")
	}
	runs := func(ctx context.Context, n int) (string, error) {
		fmt.Println("said: runs")
		<-ctx.Done()
		return "", ctx.Err()
	}
	svc := asterisque.NewService()
	book.Handle(svc, runs)
	rebook.Handle(svc, runs)
	cfg := brieflyLeased(queueing(Config{Name: "orders", ID: "killed", NATS: url}))
	c, err := Join(t.Context(), cfg, asterisque.WithService(svc))
	require.NoError(t, err)
	defer c.Close()
	<-t.Context().Done()
}

// brieflyLeased lets others learn soon that a node is gone.
func brieflyLeased(cfg Config) Config {
	cfg.Durable.Lease = time.Second
	cfg.Durable.Idempotent = []uint16{rebook.Number()}
	handedOutSoon(&cfg)
	return cfg
}

func TestOfAPostedCallWhoseNodeIsKilledNobodyKnowsWhetherItHasRun(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	c := s.customer()
	r := posts(t, c, 1)
	s.killTaker()
	s.takes("b", answers("at b"), func(c *Config) { *c = brieflyLeased(*c) })
	_, err := results(t, c, r)
	requireMayHaveRun(t, asterisque.ErrUnavailable, err)
	require.Eventually(t, func() bool { return waiting(t, c) == 0 }, bookingTime, perLook)
	require.Zero(t, s.runs.Load())
}

func TestAPostedCallThatMayRunAgainDoesWhenItsNodeIsKilled(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	c := s.customer()
	r, err := Post(t.Context(), c, "orders", rebook, 1)
	require.NoError(t, err)
	s.killTaker()
	s.takes("b", answers("at b"), func(c *Config) { *c = brieflyLeased(*c) })
	ctx, cancel := context.WithTimeout(t.Context(), bookingTime)
	defer cancel()
	text, err := Result(ctx, c, rebook, r)
	require.NoError(t, err)
	require.Equal(t, "at b", text)
	require.EqualValues(t, 1, s.runs.Load())
}

// killTaker lets a process take a call, and kills it while the call runs.
func (s *bookings) killTaker() {
	child := exec.Command(os.Args[0], "-test.run", "^TestTheKilledTaker$", "-test.v")
	child.Env = append(os.Environ(), killedTaker+"="+s.b.URL())
	out, err := child.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, child.Start())
	defer child.Wait()
	defer child.Process.Kill()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "said: runs") {
			return
		}
	}
	require.Fail(s.t, "the process has ended")
}
