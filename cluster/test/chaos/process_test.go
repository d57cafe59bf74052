//go:build unix

package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// startTime is the time limit for the start or the end of a part: NATS servers, which are restarted
// meanwhile, may have to elect a leader first.
const startTime = 2 * time.Minute

// process is a running part.
type process struct {
	name  string // these are fixed
	cmd   *exec.Cmd
	stdin io.Closer
	ready chan string   // its first line, once it works
	over  chan struct{} // closed at its end; err is set before
	err   error

	told atomic.Bool // it was asked to end, or killed
}

// startPart starts a part, and waits until it works. Its standard error is appended to a file in
// dir.
func startPart(part, name, dir string, plan any) (p *process, said string, err error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, "", err
	}
	p = &process{name: name, cmd: exec.Command(os.Args[0]), ready: make(chan string, 1), over: make(chan struct{})}
	// a program with the race detector ends at once, and not after a second
	p.cmd.Env = append(os.Environ(), partOf+"="+part, partPlan+"="+string(text), "GORACE=atexit_sleep_ms=0 exitcode=66")
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, "", err
	}
	defer log.Close() // the process has it
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, "", err
	}
	go p.follow(out) // ends with the process
	if said, err = p.awaitReady(); err != nil {
		p.kill()
	}
	return p, said, err
}

// follow reads the output of the process until it ends.
func (p *process) follow(out io.Reader) {
	in := bufio.NewReader(out)
	if line, err := in.ReadString('\n'); err == nil {
		p.ready <- strings.TrimSpace(line)
		io.Copy(io.Discard, in)
	}
	p.err = p.cmd.Wait()
	close(p.over)
}

func (p *process) awaitReady() (string, error) {
	late := time.NewTimer(startTime)
	defer late.Stop()
	select {
	case said := <-p.ready:
		return said, nil
	case <-p.over:
		return "", fmt.Errorf("%s has ended: %v", p.name, p.err)
	case <-late.C:
		return "", fmt.Errorf("%s does not work within %v", p.name, startTime)
	}
}

// kill kills the process, as kill -9 does, also while it is paused.
func (p *process) kill() {
	p.told.Store(true)
	p.cmd.Process.Kill() // fails if it has ended
	<-p.over
}

// stop ends the process gracefully, or kills it after a time limit.
func (p *process) stop() error {
	p.told.Store(true)
	p.stdin.Close()
	late := time.NewTimer(startTime)
	defer late.Stop()
	select {
	case <-p.over:
		return p.err
	case <-late.C:
		p.kill()
		return errors.New(p.name + " does not end")
	}
}

// pause suspends the process, until goOn.
func (p *process) pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) goOn() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// failed returns an error if the process has ended by itself.
func (p *process) failed() error {
	select {
	case <-p.over:
		if !p.told.Load() {
			return fmt.Errorf("%s has ended by itself: %v", p.name, p.err)
		}
	default:
	}
	return nil
}
