package stdiowire

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// Option is a setting of [Start].
type Option func(*config)

type config struct {
	log   *slog.Logger
	grace time.Duration
}

// WithLogger sets the logger for the lines of the child's standard error, if its Cmd has no Stderr;
// the default is slog.Default(). They have level Info.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// WithGrace sets how long Close waits for the child to end before it kills it, 5 seconds by
// default. With 0, Close kills it at once.
func WithGrace(d time.Duration) Option { return func(c *config) { c.grace = d } }

func newConfig(opts []Option) (config, error) {
	c := config{log: slog.Default(), grace: 5 * time.Second}
	for _, o := range opts {
		o(&c)
	}
	switch {
	case c.log == nil:
		return c, errors.New("WithLogger: the logger is nil")
	case c.grace < 0:
		return c, fmt.Errorf("WithGrace: %v is negative", c.grace)
	}
	return c, nil
}

// Start starts cmd and returns the Wire to it. The Wire owns cmd. cmd must have neither Stdin nor
// Stdout. A Stderr of cmd receives the lines of the child's standard error, one by each Write, with
// their line ends; without one they are logged. The Wire must be closed, also when the child has
// ended.
//
// If cmd was made by [exec.CommandContext], the child also ends with that context.
func Start(cmd *exec.Cmd, opts ...Option) (wire.Wire, error) {
	w, err := start(cmd, opts)
	if err != nil {
		return nil, fmt.Errorf("stdiowire: start %s: %w", cmd, err)
	}
	return w, nil
}

func start(cmd *exec.Cmd, opts []Option) (wire.Wire, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if cmd.Stdin != nil || cmd.Stdout != nil {
		return nil, errors.New("the Cmd has a Stdin or Stdout already, which the Wire needs for itself")
	}
	var p pipes
	if err := p.open(); err != nil {
		return nil, err
	}
	stderr := cmd.Stderr
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.childIn, p.childOut, p.childErr
	err = cmd.Start()
	p.closeChilds()
	if err != nil {
		p.closeParents()
		return nil, err
	}
	c := &childProcess{
		cmd: cmd, name: fmt.Sprintf("%s (pid %d)", filepath.Base(cmd.Path), cmd.Process.Pid), grace: cfg.grace,
		in: p.in, out: p.out, ended: make(chan struct{}), gone: make(chan struct{}),
	}
	if stderr == nil {
		stderr = logWriter{cfg.log, c.name}
	}
	go c.wait(p.err, stderr) // ends with the child
	return &childWire{wire.FromConn(c).(streamWire), c}, nil
}

// pipes are the three pipes to a child. They are files, so that the end of the child is visible
// even if another process has them open, unlike with the pipes of package exec.
type pipes struct {
	in, out, err                *os.File // the parent's ends
	childIn, childOut, childErr *os.File
}

func (p *pipes) open() (err error) {
	if p.childIn, p.in, err = os.Pipe(); err == nil {
		if p.out, p.childOut, err = os.Pipe(); err == nil {
			p.err, p.childErr, err = os.Pipe()
		}
	}
	if err != nil {
		p.closeChilds()
		p.closeParents()
	}
	return err
}

func (p *pipes) closeChilds() { closeAll(p.childIn, p.childOut, p.childErr) }

func (p *pipes) closeParents() { closeAll(p.in, p.out, p.err) }

// closeAll closes files, of which some may be nil.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // Close of nil returns an error
	}
}
