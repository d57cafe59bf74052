//go:build unix

package sessions

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// stopped is the environment variable with the address that a child process dials.
const stopped = "ASTERISQUE_TEST_STOPPED"

// TestStopped_KeepsSessions stops a process of a hundred sessions by a signal for longer than their
// timeout. It takes real time, and so is one of the long tests; package carrier tests the same with
// a fake clock.
func TestStopped_KeepsSessions(t *testing.T) {
	timeouts := asterisque.WithTimeouts(asterisque.Timeouts{Ping: time.Second, Silence: 2 * time.Second})
	if url := os.Getenv(stopped); url != "" {
		node := testkit.NewNode(t, timeouts)
		var sessions []*asterisque.Session
		for range 100 {
			s, err := node.Dial(testkit.Background, url)
			require.NoError(t, err)
			sessions = append(sessions, s)
		}
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadString('\n')
		for _, s := range sessions {
			_, err := testkit.Echo.Call(testkit.Background, s, "still there")
			require.NoError(t, err)
		}
		fmt.Println("all live")
		return
	}
	if !*testkit.Soak {
		t.Skip("-soak runs it")
	}
	there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()))
	cmd, in, says := child(t, testkit.Serve(t, there))
	says("ready")
	for range 3 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(4 * time.Second) //nolint:forbidigo // in which the child does not run
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		time.Sleep(time.Second) //nolint:forbidigo // in which it looks at its sessions
	}
	fmt.Fprintln(in)
	says("all live")
	require.NoError(t, cmd.Wait())
}

// child runs the present test once more, in a process of its own that finds told in its
// environment. says waits until it has written a line.
func child(t *testing.T, told string) (cmd *exec.Cmd, in io.Writer, says func(what string)) {
	cmd = exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), stopped+"="+told)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	out := bufio.NewScanner(stdout)
	return cmd, in, func(what string) {
		for out.Scan() {
			if strings.Contains(out.Text(), what) {
				return
			}
		}
		t.Fatalf("the child never said %q", what)
	}
}

// TestStopped_CallsHaveTheTimeToFinish stops a process that drains a session for longer than calls
// have to finish. It is one of the long tests, too.
func TestStopped_CallsHaveTheTimeToFinish(t *testing.T) {
	if os.Getenv(stopped) != "" {
		svc, began := asterisque.NewService(), make(chan struct{})
		testkit.Echo.Handle(svc, func(ctx context.Context, s string) (string, error) {
			close(began)
			<-asterisque.Draining(ctx)
			for n := range 50 {
				select {
				case <-time.After(10 * time.Millisecond): // while the process runs
				case <-ctx.Done():
					return "", ctx.Err()
				}
				if n == 10 {
					fmt.Println("drains")
				}
			}
			return s, nil
		})
		here, there := testkit.Connect(t, svc, testkit.DrainOf(2*time.Second))
		called := make(chan error, 1)
		go func() { _, err := testkit.Echo.Call(testkit.Background, here, "finishes"); called <- err }()
		<-began
		require.NoError(t, there.Shutdown(testkit.Background))
		require.NoError(t, <-called)
		fmt.Println("finished")
		return
	}
	if !*testkit.Soak {
		t.Skip("-soak runs it")
	}
	cmd, _, says := child(t, "drain")
	says("drains")
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(4 * time.Second) //nolint:forbidigo // in which the child does not run
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	says("finished")
	require.NoError(t, cmd.Wait())
}
