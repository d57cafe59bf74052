package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
)

// startedBy is a variable that is set for a part that another process has started.
const startedBy = "FLEET_STARTED"

// started returns the context of such a part. It ends also with the standard input, that is with
// the process that has started the part, even if that was killed. Only that process reacts to an
// interrupt of the terminal.
func started(ctx context.Context) context.Context {
	signal.Ignore(os.Interrupt)
	ctx, end := context.WithCancel(ctx)
	go func() { // ends with the process
		io.Copy(io.Discard, os.Stdin)
		end()
	}()
	return ctx
}

// process is a part that runs as a process.
type process struct {
	name  string // these are fixed
	cmd   *exec.Cmd
	stdin io.Closer
	notes *notes
	over  chan struct{} // closed when the process has ended; err is set before
	err   error

	told atomic.Bool // it is to end, or was killed
}

// startProcess starts a part with flags, and waits for its first line of output, which reports that
// it is ready. fail is called if it ends unexpectedly.
func startProcess(ctx context.Context, name string, fail func(error), flags ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(self, flags...), notes: new(notes), over: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), startedBy+"=1")
	p.cmd.Stderr = p.notes
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ready := make(chan struct{})
	go p.follow(out, ready, fail) // ends with the process
	select {
	case <-ready:
		return p, nil
	case <-p.over:
		return nil, p.ended()
	case <-ctx.Done():
		p.kill()
		return nil, fmt.Errorf("waiting for %s: %w", name, context.Cause(ctx))
	}
}

// follow reads the output of the process until it ends.
func (p *process) follow(out io.Reader, ready chan<- struct{}, fail func(error)) {
	if in := bufio.NewReader(out); firstLine(in) {
		close(ready)
		io.Copy(io.Discard, in)
	}
	p.err = p.cmd.Wait()
	close(p.over)
	if !p.told.Load() {
		fail(p.ended())
	}
}

func firstLine(in *bufio.Reader) bool {
	_, err := in.ReadString('\n')
	return err == nil
}

// ended returns the error of a process that has ended.
func (p *process) ended() error {
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s has ended: %w\n%s", p.name, err, p.notes)
}

// kill kills the process, as kill -9 does.
func (p *process) kill() {
	p.told.Store(true)
	p.cmd.Process.Kill()
	<-p.over
}

// stop ends the process gracefully, and returns an error if it failed. If ctx ends first it is
// killed. For a process that has ended before, stop returns nil.
func (p *process) stop(ctx context.Context) error {
	select {
	case <-p.over:
		return nil
	default:
		p.told.Store(true)
	}
	p.stdin.Close()
	select {
	case <-p.over:
	case <-ctx.Done():
		p.kill()
	}
	if p.err != nil {
		return p.ended()
	}
	return nil
}

// notes keeps the end of a process's standard error.
type notes struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

const mostNotes = 4 << 10

// Write implements io.Writer.
func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, b...)
	n.text = n.text[max(0, len(n.text)-mostNotes):]
	return len(b), nil
}

// String returns the end.
func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.TrimSpace(string(n.text))
}
