//go:build unix

package cluster

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
	"github.com/asterisque-go/asterisque/cluster/broker"
)

// pausedBy names the NATS server to the process that is paused, which is this test again.
const pausedBy = "ASTERISQUE_TEST_PAUSED_BY"

// TestThePausedProcess is that process: it claims a key, and for each line that it reads says
// whether it believes that it holds it, and what becomes of a call in that role.
func TestThePausedProcess(t *testing.T) {
	url := os.Getenv(pausedBy)
	if url == "" {
		t.Skip("it is started by TestAProcessThatWasPausedDoesNotGoOnAsTheHolder")
	}
	cfg := Config{Name: "hubs", ID: "paused", NATS: url}
	cfg.times.life = time.Second
	c := joined(t, cfg)
	store := callerOf(t, c, "store")
	claim, err := c.Claim(t.Context(), "device/4711")
	require.NoError(t, err)
	mark := asterisque.Metadata{asHolder: claimMark(claim.Key(), claim.Epoch())}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		// the second call is one that was past all that this process itself knows
		_, own := who.Call(t.Context(), claim.Caller(store), struct{}{})
		_, raw := who.Call(t.Context(), store, struct{}{}, asterisque.WithMetadata(mark))
		fmt.Printf("said: %v; %v; %v\n", claim.Err() == nil, own == nil, raw == nil)
	}
}

func TestAProcessThatWasPausedDoesNotGoOnAsTheHolder(t *testing.T) {
	t.Parallel()
	b := start(t, broker.Config{})
	joined(t, brief(listening(config(b, "store", "s"))))
	c := joined(t, brief(config(b, "hubs", "next")))
	child := exec.Command(os.Args[0], "-test.run", "^TestThePausedProcess$", "-test.v")
	child.Env = append(os.Environ(), pausedBy+"="+b.URL())
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	defer func() {
		in.Close()
		child.Process.Kill()
		child.Wait()
	}()
	lines := bufio.NewScanner(out)
	require.Equal(t, "true; true; true", saidBy(t, in, lines))

	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	next, err := c.AwaitClaim(ctx, "device/4711")
	require.NoError(t, err)
	require.Equal(t, "s", ask(t, next.Caller(callerOf(t, c, "store"))))
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	require.Equal(t, "false; false; false", saidBy(t, in, lines))
}

// saidBy asks the process, and returns its answer.
func saidBy(t *testing.T, in io.Writer, lines *bufio.Scanner) string {
	t.Helper()
	_, err := io.WriteString(in, "say\n")
	require.NoError(t, err)
	for lines.Scan() {
		if _, said, ok := strings.Cut(lines.Text(), "said: "); ok {
			return said
		}
	}
	t.Fatal("the process has ended")
	return ""
}
