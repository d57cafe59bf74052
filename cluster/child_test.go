package cluster

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

// inChild returns the URL of the NATS server if this process is a child, and skips the test if not.
func inChild(t *testing.T) (url string) {
	t.Helper()
	if url = os.Getenv(childNATS); url == "" {
		t.Skip("another test starts it, as a process of its own")
	}
	return url
}

// say prints a line from a child to its parent.
func say(format string, args ...any) { fmt.Printf("said: "+format+"\n", args...) }

// child is a process of its own that runs one of these tests again.
type child struct {
	*exec.Cmd
	t     testing.TB
	in    io.WriteCloser
	lines *bufio.Scanner
}

// startChild runs a test in a new process, which is killed when t ends.
func startChild(t testing.TB, test, url string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childNATS+"="+url)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd, t, in, bufio.NewScanner(out)}
	t.Cleanup(c.kill)
	return c
}

// kill ends the process, if it has not ended.
func (c *child) kill() {
	c.in.Close()
	c.Process.Kill()
	c.Wait()
}

// tell writes a line to the process.
func (c *child) tell(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	require.NoError(c.t, err)
}

// said returns the next line of the process.
func (c *child) said() string {
	c.t.Helper()
	for c.lines.Scan() {
		if _, said, ok := strings.Cut(c.lines.Text(), "said: "); ok {
			return said
		}
	}
	require.Fail(c.t, "the process has ended")
	return ""
}
