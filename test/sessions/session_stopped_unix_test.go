//go:build unix

package sessions

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/testkit"
)

// stopped is the variable of the environment in which a child finds where it is to dial.
const stopped = "ASTERISQUE_TEST_STOPPED"

// TestStopped_ProcessKeepsItsSessions stops a process of a hundred sessions by a signal for longer
// than they wait for a sign of life. It takes real time, and so is one of the long tests; those of
// package carrier with a clock of their own say the same.
func TestStopped_ProcessKeepsItsSessions(t *testing.T) {
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
	url := testkit.Serve(t, there)
	cmd := exec.Command(os.Args[0], "-test.run=^TestStopped_ProcessKeepsItsSessions$")
	cmd.Env = append(os.Environ(), stopped+"="+url)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	out := bufio.NewScanner(stdout)
	says := func(what string) {
		for out.Scan() {
			if strings.Contains(out.Text(), what) {
				return
			}
		}
		t.Fatalf("the child never said %q", what)
	}
	require.NoError(t, cmd.Start())
	says("ready")
	for range 3 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		<-time.After(4 * time.Second) // in which the child does not run
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		<-time.After(time.Second) // in which it looks at its sessions
	}
	fmt.Fprintln(in)
	says("all live")
	require.NoError(t, cmd.Wait())
}
