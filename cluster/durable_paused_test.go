//go:build unix

package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// pausedBooking names the NATS server to the process that is paused, which is this test again.
const pausedBooking = "ASTERISQUE_TEST_PAUSED_BOOKING"

// TestThePausedBooking is that process: a replica that says where it listens, and that it runs a
// call, and runs it until it reads a line.
func TestThePausedBooking(t *testing.T) {
	url := os.Getenv(pausedBooking)
	if url == "" {
		t.Skip("it is started by TestAProcessThatWasPausedDoesNotRunACallAgain")
	}
	in := bufio.NewScanner(os.Stdin)
	svc := asterisque.NewService()
	book.Handle(svc, func(context.Context, int) (string, error) {
		fmt.Println("said: runs")
		in.Scan()
		return "by the paused one", nil
	})
	cfg := Config{Name: "orders", ID: "paused", NATS: url, Listen: []string{"tcp://127.0.0.1:0"}}
	cfg.Durable = &Durable{InMemory: true, Lease: time.Second, Remember: 2 * longestLease}
	c, err := Join(t.Context(), cfg, asterisque.WithService(svc))
	require.NoError(t, err)
	defer c.Close()
	fmt.Println("said:", c.self.self.Addresses[0])
	<-t.Context().Done() // it is killed
}

func TestAProcessThatWasPausedDoesNotRunACallAgain(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	b := s.replica("b", answers("at b"), lease(time.Second))
	p := s.pausedProcess()
	key := aKey()
	first := make(chan outcome, 1)
	go func() { // ends with the call
		text, err := book.Call(t.Context(), p.session, 1, asterisque.WithIdempotencyKey(key))
		first <- outcome{text, err}
	}()
	require.Equal(t, "runs", p.said())
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	_, err := b.books(key)
	requireMayHaveRun(t, asterisque.ErrUnavailable, err)

	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	_, err = p.in.Write([]byte("go on\n"))
	require.NoError(t, err)
	requireText(t, "by the paused one", first)
	text, err := b.books(key)
	require.NoError(t, err, "its answer may still be put in")
	require.Equal(t, "by the paused one", text)
	require.Zero(t, s.runs.Load())
}

func TestOfACallWhoseProcessIsKilledARepetitionLearnsThatItMayHaveRun(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	b := s.replica("b", answers("at b"), lease(time.Second))
	p := s.pausedProcess()
	key := aKey()
	// ends with its process
	go book.Call(t.Context(), p.session, 1, asterisque.WithIdempotencyKey(key))
	require.Equal(t, "runs", p.said())
	require.NoError(t, p.cmd.Process.Kill())
	_, err := b.books(key)
	requireMayHaveRun(t, asterisque.ErrUnavailable, err)
	require.Zero(t, s.runs.Load())
}

// pausedReplica is a replica that is a process of its own.
type pausedReplica struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      interface{ Write([]byte) (int, error) }
	lines   *bufio.Scanner
	session *asterisque.Session
}

func (s *bookings) pausedProcess() *pausedReplica {
	t := s.t.(*testing.T)
	child := exec.Command(os.Args[0], "-test.run", "^TestThePausedBooking$", "-test.v")
	child.Env = append(os.Environ(), pausedBooking+"="+s.b.URL())
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		in.Close()
		child.Process.Kill()
		child.Wait()
	})
	p := &pausedReplica{t: t, cmd: child, in: in, lines: bufio.NewScanner(out)}
	node := asterisque.NewNode()
	t.Cleanup(func() { node.Close() })
	p.session, err = node.Dial(t.Context(), p.said())
	require.NoError(t, err)
	return p
}

// said returns what it says next.
func (p *pausedReplica) said() string {
	p.t.Helper()
	for p.lines.Scan() {
		if _, said, ok := strings.Cut(p.lines.Text(), "said: "); ok {
			return said
		}
	}
	p.t.Fatal("the process has ended")
	return ""
}
