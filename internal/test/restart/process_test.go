//go:build unix

package restart

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// process is a server, and its successors if it hands over.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
	pid   int
}

// start starts a server and waits until it accepts connections. The server ends with t.
func start(t *testing.T, url string, files ...*os.File) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.ExtraFiles, cmd.Stderr = files, os.Stderr
	cmd.Env = append(os.Environ(), serverVariable+"="+url, fmt.Sprint("LISTEN_FDS=", len(files)), "LISTEN_FDNAMES=rpc")
	// a program with the race detector ends at once, and not after a second
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0 exitcode=66")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{t: t, cmd: cmd, stdin: stdin, lines: bufio.NewScanner(out)}
	t.Cleanup(p.end)
	p.pid = p.ready()
	return p
}

// ready waits until the next server accepts connections, and returns its process id.
func (p *process) ready() (pid int) {
	p.t.Helper()
	require.True(p.t, p.lines.Scan(), "the server has ended")
	_, err := fmt.Sscanf(p.lines.Text(), "ready %d", &pid)
	require.NoError(p.t, err, p.lines.Text())
	return pid
}

// end ends the remaining processes and waits for them.
func (p *process) end() {
	p.stdin.Close()
	for p.lines.Scan() { // until the last process has ended
	}
	p.cmd.Wait()
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// leaves sends a signal to a server, and waits for its graceful shutdown.
func (p *process) leaves(s syscall.Signal) {
	p.t.Helper()
	p.signal(s)
	require.NoError(p.t, p.cmd.Wait(), "a graceful shutdown")
}
