package stdiowire_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/stdiowire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

var background = context.Background()

// wireOfChild is the parent's Wire with the command of the child.
type wireOfChild struct {
	wire.Wire
	cmd *exec.Cmd
}

// quiet discards the output of children.
var quiet = stdiowire.WithLogger(slog.New(slog.DiscardHandler))

// handshakeTime is longer than any slow machine needs.
const handshakeTime = 2 * time.Minute

// attach begins a session with a child.
func attach(t *testing.T, w wire.Wire) (*asterisque.Session, error) {
	node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Handshake: handshakeTime}))
	t.Cleanup(func() { node.Close() })
	return node.Attach(background, w)
}

func TestStdio_Suite(t *testing.T) {
	wiretest.Run(t, func(t *testing.T) (a, b wire.Wire) { return relayed(t) })
}

// relayed returns the Wire to a child that only relays, and the Wire behind it.
func relayed(t *testing.T) (parent, behind wire.Wire) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	parent = startCommand(t, program("relay", l.Addr().String()), quiet, stdiowire.WithGrace(100*time.Millisecond)).Wire
	c, err := l.Accept()
	require.NoError(t, err)
	return parent, wire.FromConn(c)
}

func TestStart_Session(t *testing.T) {
	w := startChild(t, "serve", quiet)
	require.Contains(t, w.RemoteAddr().String(), "(pid "+strconv.Itoa(w.cmd.Process.Pid)+")")
	sess, err := attach(t, w)
	require.NoError(t, err)
	var calls sync.WaitGroup
	for i := range 100 {
		calls.Go(func() {
			text := strings.Repeat("*", 1000*i)
			got, err := echo.Call(background, sess, text)
			if err != nil || got != text {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	calls.Wait()
	require.NoError(t, sess.Close())
	w.Close()
	require.True(t, w.cmd.ProcessState.Success(), "the child has ended by itself: %v", w.cmd.ProcessState)
}

// Later prints of a child do no harm.
func TestStdio_LaterPrints(t *testing.T) {
	var said lines
	w := startChild(t, "print later", stdiowire.WithLogger(said.logger()))
	sess, err := attach(t, w)
	require.NoError(t, err)
	got, err := echo.Call(background, sess, "clean")
	require.NoError(t, err)
	require.Equal(t, "clean", got)
	sess.Close()
	w.Close()
	require.Equal(t, []string{"a stray line"}, said.all())
}

// A child finds its standard input empty.
func TestStdio_EmptyInput(t *testing.T) {
	sess, err := attach(t, startChild(t, "read standard input", quiet))
	require.NoError(t, err)
	got, err := echo.Call(background, sess, "")
	require.NoError(t, err)
	require.Equal(t, `"" EOF`, got)
}

// A child that fails in the handshake is a clear error.
func TestChild_FailsInHandshake(t *testing.T) {
	for name, wants := range map[string][]string{
		"die":                       {"ended: exit status 3", "the disk is on fire"},
		"die after the first frame": {"asterisque"}, // what it says is no Sync
		"end":                       {"closed the wire before the handshake was complete"},
		"print and end":             {`the child printed "hi\n"`, "print to standard error"},
		"print a lot":               {`the child printed "usage: plugin`, "print to standard error"},
		"serve and print":           {`the child printed "printed before Stdio`, "print to standard error"},
		"write garbage":             {"does not speak asterisque"},
		"cut a frame":               {"closed the wire before the handshake was complete"},
		"stdio twice":               {"ended: exit status 1", "is not a pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, err := attach(t, startChild(t, name, quiet))
			require.ErrorIs(t, err, asterisque.ErrHandshake)
			for _, want := range wants {
				require.ErrorContains(t, err, want)
			}
			require.Less(t, time.Since(begin), handshakeTime, "no timeout of the handshake was needed")
		})
	}
}

// The death of a child is an error of reading and writing.
func TestChild_Dies(t *testing.T) {
	w := startChild(t, "die after the first frame", quiet)
	require.NoError(t, w.WriteFrames([][]byte{[]byte("go")}))
	frame, err := w.ReadFrame(100)
	require.NoError(t, err, "what the child has written before still arrives")
	require.Equal(t, "last words", string(frame))
	for range 2 {
		_, err = w.ReadFrame(100)
		require.ErrorContains(t, err, "wire: read: the child ")
		require.ErrorContains(t, err, "ended: exit status 4")
	}
	require.ErrorContains(t, w.WriteFrames([][]byte{make([]byte, 1<<20)}), "ended: exit status 4")
}

// The end of a child with exit status 0 is the end of the Wire.
func TestChild_EndsWell(t *testing.T) {
	for _, name := range []string{"end", "end at once"} {
		_, err := startChild(t, name, quiet).ReadFrame(100)
		require.Equal(t, io.EOF, err)
	}
	_, err := startChild(t, "cut a frame", quiet).ReadFrame(100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// A child that ignores the end of its input is killed.
func TestClose_KillsChild(t *testing.T) {
	w := startChild(t, "stay", quiet, stdiowire.WithGrace(50*time.Millisecond))
	require.NoError(t, w.Close())
	require.Equal(t, "signal: killed", w.cmd.ProcessState.String())
	_, err := w.ReadFrame(100)
	require.ErrorIs(t, err, net.ErrClosed)
}

// Each Close waits for the end of the child.
func TestClose_EachWaits(t *testing.T) {
	w := startChild(t, "stay", quiet, stdiowire.WithGrace(100*time.Millisecond))
	var closing sync.WaitGroup
	for range 4 {
		closing.Go(func() {
			if w.Close(); w.cmd.ProcessState == nil {
				t.Error("the child is still there")
			}
		})
	}
	closing.Wait()
}

func TestClose_WakesReader(t *testing.T) {
	w := startChild(t, "stay", quiet, stdiowire.WithGrace(time.Hour))
	closed := make(chan error)
	go func() { closed <- w.Close() }()
	_, err := w.ReadFrame(100)
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, w.cmd.Process.Kill())
	require.NoError(t, <-closed)
}

// A child that still writes after Close is not blocked.
func TestClose_ChildStillWrites(t *testing.T) {
	w := startChild(t, "write at its end", quiet, stdiowire.WithGrace(time.Minute))
	require.NoError(t, w.Close())
	require.True(t, w.cmd.ProcessState.Success())
}

// Close in a child wakes its reader, and ends the Wire.
func TestStdio_Close(t *testing.T) {
	w := startChild(t, "close while reading", quiet)
	require.NoError(t, w.WriteFrames([][]byte{nil}))
	_, err := w.ReadFrame(100)
	require.ErrorContains(t, err, "exit status 7")
	require.ErrorContains(t, err, net.ErrClosed.Error())
}

// The context of a command ends the child.
func TestStart_CommandContext(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = program("stay").Env
	w := startCommand(t, cmd, quiet)
	cancel()
	_, err := w.ReadFrame(100)
	require.ErrorContains(t, err, "ended: ")
}

// A process that a child leaves behind blocks nothing.
func TestChild_LeavesProcess(t *testing.T) {
	var pid bytes.Buffer
	cmd := program("leave a process")
	cmd.Stderr = &pid
	w := startCommand(t, cmd)
	frame, err := w.ReadFrame(100)
	require.NoError(t, err)
	require.Equal(t, "ok", string(frame))
	_, err = w.ReadFrame(100)
	require.ErrorContains(t, err, "ended: exit status 6")
	require.NoError(t, w.Close())
	left, err := strconv.Atoi(pid.String())
	require.NoError(t, err)
	process, err := os.FindProcess(left)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
}

func TestStdio_ParentDies(t *testing.T) {
	cleaned := filepath.Join(t.TempDir(), "cleaned up")
	cmd := program("outlive the parent", cleaned)
	var ours []*os.File // ends of the pipes, which the system closes when a parent dies
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		return r, w
	}
	in, toChild := pipe()
	fromChild, out := pipe()
	errorsOfChild, stderr := pipe()
	ours = append(ours, toChild, fromChild, errorsOfChild)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, stderr
	require.NoError(t, cmd.Start())
	for _, f := range append(ours, in, out, stderr) {
		require.NoError(t, f.Close())
	}
	require.NoError(t, cmd.Wait(), "it ends by itself")
	said, err := os.ReadFile(cleaned)
	require.NoError(t, err)
	require.Equal(t, "EOF\nwrite /dev/stdout: broken pipe\nwire: write: write standard output: broken pipe", string(said))
}

// Each line of standard error is logged.
func TestStderr_Logged(t *testing.T) {
	var said lines
	startChild(t, "say", stdiowire.WithLogger(said.logger())).Close()
	require.Equal(t, []string{"first", "", "second", "without an end"}, said.all())
}

// A Stderr of the command gets each line.
func TestStderr_OfCommand(t *testing.T) {
	var said writes
	cmd := program("say")
	cmd.Stderr = &said
	startCommand(t, cmd).Close()
	require.Equal(t, writes{"first\n", "\n", "second\r\n", "without an end"}, said)
}

func TestStart_Invalid(t *testing.T) {
	_, err := stdiowire.Start(exec.Command("/no/such/program"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "stdiowire: start /no/such/program")
	taken := program("end")
	taken.Stdout = io.Discard
	_, err = stdiowire.Start(taken)
	require.ErrorContains(t, err, "Stdout already")
	_, err = stdiowire.Start(program("end"), stdiowire.WithGrace(-1))
	require.ErrorContains(t, err, "WithGrace")
	_, err = stdiowire.Start(program("end"), stdiowire.WithLogger(nil))
	require.ErrorContains(t, err, "WithLogger")
}

func TestStdio_NoParent(t *testing.T) {
	file, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer file.Close()
	before := os.Stdin
	defer func() { os.Stdin = before }()
	os.Stdin = file
	_, err = stdiowire.Stdio()
	require.ErrorContains(t, err, "is not a pipe: this program has to be started by another")
}

var register sync.Once

func TestRegister_URL(t *testing.T) {
	require.Error(t, stdiowire.Register(stdiowire.WithGrace(-1)))
	register.Do(func() { // for tests that are repeated
		_, err := wire.Dial(background, "stdio:///bin/true", wire.Options{})
		require.ErrorContains(t, err, "unknown", "the scheme is not there by itself")
		require.NoError(t, stdiowire.Register(quiet))
	})
	require.Error(t, stdiowire.Register(), "once only")

	t.Setenv(play, "arguments")
	w, err := wire.Dial(background, "stdio://"+os.Args[0]+"?arg=-a&arg=b+c", wire.Options{})
	require.NoError(t, err)
	defer w.Close()
	_, err = w.ReadFrame(100)
	require.ErrorContains(t, err, `exit status 5`)
	require.ErrorContains(t, err, `-a`)
	require.ErrorContains(t, err, `b c`)

	for url, want := range map[string]string{
		"stdio:":                   "the program is missing",
		"stdio://host/program":     "nothing but a program",
		"stdio:program#fragment":   "nothing but a program",
		"stdio:program?args=x":     "nothing but arg",
		"stdio:no-such-program-xy": "not found",
	} {
		_, err := wire.Dial(background, url, wire.Options{})
		require.ErrorContains(t, err, want, url)
	}
	for _, url := range []string{"stdio:no-such-program-xy?arg=s3cret", "stdio:program?password=s3cret", "stdio://me:s3cret@program", "stdio:program?arg=s3cret&x=%zz"} {
		_, err := wire.Dial(background, url, wire.Options{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cret", "what stands in a query may be a secret")
	}
	_, err = wire.Listen(background, "stdio:", wire.Options{})
	require.ErrorContains(t, err, "stdiowire.Stdio")
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err = wire.Dial(ctx, "stdio:program", wire.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// writes records the bytes of each Write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// lines records the logged lines.
type lines struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "line" {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.list = append(l.list, a.Value.String())
		}
		return a
	}}))
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list
}
