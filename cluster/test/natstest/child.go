package natstest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// childNATS is the environment variable with the URL of the NATS server, for a process that runs
// one of these tests again.
const childNATS = "ASTERISQUE_TEST_CHILD_NATS"

// InChild returns the URL of the NATS server if this process is a child, and skips the test if not.
func InChild(t *testing.T) (url string) {
	t.Helper()
	if url = os.Getenv(childNATS); url == "" {
		t.Skip("another test starts it, as a process of its own")
	}
	return url
}

// Say prints a line from a child to its parent.
func Say(format string, args ...any) { fmt.Printf("said: "+format+"\n", args...) }

// Child is a process of its own that runs one of these tests again.
type Child struct {
	*exec.Cmd
	t     testing.TB
	in    io.WriteCloser
	lines *bufio.Scanner
}

// StartChild runs a test in a new process, which is killed when t ends.
func StartChild(t testing.TB, test, url string) *Child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childNATS+"="+url)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &Child{cmd, t, in, bufio.NewScanner(out)}
	t.Cleanup(c.Kill)
	return c
}

// Kill ends the process, if it has not ended.
func (c *Child) Kill() {
	c.in.Close()
	c.Process.Kill()
	c.Wait()
}

// Tell writes a line to the process.
func (c *Child) Tell(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	require.NoError(c.t, err)
}

// Said returns the next line of the process.
func (c *Child) Said() string {
	c.t.Helper()
	for c.lines.Scan() {
		if _, said, ok := strings.Cut(c.lines.Text(), "said: "); ok {
			return said
		}
	}
	require.Fail(c.t, "the process has ended")
	return ""
}
