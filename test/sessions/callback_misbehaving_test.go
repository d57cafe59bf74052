package sessions

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// misbehaving is the environment variable that names the misbehaving callback of a test process.
const misbehaving = "ASTERISQUE_MISBEHAVING"

// TestCallback_Misbehaves makes every callback panic, end its goroutine, block forever, close its
// node and call back. Each callback runs in a process of its own, which must survive.
func TestCallback_Misbehaves(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(misbehaving); name != "" {
		for i := range callbacks {
			if callbacks[i].name == name {
				callbacks[i].play(t)
			}
		}
		fmt.Println("survived")
		os.Exit(0) // not through the checks of all tests: what blocks is there still
	}
	outs, errs := make([][]byte, len(callbacks)), make([]error, len(callbacks))
	var all sync.WaitGroup
	places := make(chan struct{}, 34) // they wait more than they work
	for i := range callbacks {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			cmd := exec.Command(os.Args[0], "-test.run=^TestCallback_Misbehaves$", "-test.timeout=20m")
			cmd.Env = append(os.Environ(), misbehaving+"="+callbacks[i].name, "GORACE=atexit_sleep_ms=0")
			outs[i], errs[i] = cmd.CombinedOutput()
		})
	}
	all.Wait()
	for i := range callbacks {
		t.Run(callbacks[i].name, func(t *testing.T) {
			require.NoError(t, errs[i], "%s", outs[i])
			require.Contains(t, string(outs[i]), "survived")
		})
	}
}

// hows are the kinds of misbehaviour.
var hows = []string{"returns", "panics", "panics with nil", "ends its goroutine", "blocks", "closes the node", "calls"}

// callback is a callback that misbehaves.
type callback struct {
	name string

	// options returns the options of the node.
	options func(m *misbehaviour) []asterisque.Option

	// trigger makes the node call the callback over a session that the peer dials, and returns the
	// outcome.
	trigger func(m *misbehaviour) error

	panics  string // the outcome when it panics, and the default for the other fields
	exits   string // when it ends its goroutine
	blocks  string // when it blocks: "never" is none
	returns string // when it does what it should, or calls: by default ok
	own     bool   // it ends the goroutine of its caller, which is no loss, and not logged
	skips   string // how it is not played: a Wire must not do that
}

// misbehaviour is one callback with one kind of misbehaviour.
type misbehaviour struct {
	t     *testing.T
	how   string
	want  string // the outcome
	armed atomic.Bool
	ever  chan struct{} // closed when the blocked ones may go

	node, peer       *asterisque.Node
	nodeURL, peerURL string
	session          atomic.Pointer[asterisque.Session] // of node, on which it calls
	log              stackLog
}

// hook is called in the callback. Once armed, hook misbehaves one time.
func (m *misbehaviour) hook() { m.hookIn(testkit.Background) }

// hookIn is hook with the context of the callback.
func (m *misbehaviour) hookIn(ctx context.Context) {
	if !m.armed.Swap(false) {
		return
	}
	switch m.how {
	case "panics":
		panic("x")
	case "panics with nil":
		panic(nil)
	case "ends its goroutine":
		runtime.Goexit()
	case "blocks":
		<-m.ever
	case "closes the node":
		m.node.Close()
	case "calls":
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if s := asterisque.SessionOf(ctx); s != nil {
			testkit.Echo.Call(ctx, s, "back")
		} else if s := m.session.Load(); s != nil {
			testkit.Echo.Call(ctx, s, "call")
		}
		m.node.Sessions()
		m.node.Stats()
	}
}

// stackLog counts log records with a stack.
type stackLog struct{ atomic.Int64 }

func (*stackLog) Enabled(context.Context, slog.Level) bool { return true }
func (s *stackLog) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s *stackLog) WithGroup(string) slog.Handler          { return s }
func (s *stackLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "stack" && r.Level == slog.LevelError {
			s.Add(1)
		}
		return true
	})
	return nil
}

func (c *callback) play(t *testing.T) {
	for _, how := range hows {
		if strings.Contains(c.skips, how) {
			continue
		}
		m := &misbehaviour{t: t, how: how, want: c.outcome(how), ever: make(chan struct{})}
		c.playOnce(m)
	}
}

// playOnce runs the test with one kind of misbehaviour.
func (c *callback) playOnce(m *misbehaviour) {
	before := runtime.NumGoroutine()
	opts := []asterisque.Option{
		asterisque.WithService(m.service()), asterisque.WithLogger(slog.New(&m.log)), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: m.handshake()}),
		asterisque.WithAccess(asterisque.Access{PlainCredentials: true}),
	}
	m.peer = asterisque.NewNode(opts[0], asterisque.WithAccess(asterisque.Access{PlainCredentials: true}), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	if c.options != nil {
		opts = append(opts, c.options(m)...)
	}
	m.node = asterisque.NewNode(opts...)
	m.nodeURL, m.peerURL = serveAt(m.t, m.node), serveAt(m.t, m.peer)
	var other *asterisque.Session
	m.settles("a handshake within the time for it", func() (ok bool) {
		s, err := m.peer.Dial(testkit.Background, m.nodeURL)
		other = s
		return err == nil
	})
	m.talk(other)
	m.armed.Store(m.how != "returns")
	if got := m.outcome(c.trigger); m.want != "" {
		require.Equal(m.t, m.want, got, m.how)
	}
	m.settles("it was called", func() bool { return !m.armed.Load() })
	if m.how != "closes the node" {
		m.talk(other)
	}
	m.within("Close of the node", func() { m.node.Close() })
	m.within("Close of the peer", func() { m.peer.Close() })
	switch {
	case strings.HasPrefix(m.how, "panics"), m.how == "ends its goroutine" && !c.own:
		m.settles("one stack is logged", func() bool { return m.log.Load() == 1 })
	default:
		require.Zero(m.t, m.log.Load(), m.how)
	}
	if m.how == "blocks" {
		m.settles("only what blocks is left", func() bool { return runtime.NumGoroutine() <= before+1 })
	}
	close(m.ever)
	m.settles("nothing is left", func() bool { return runtime.NumGoroutine() <= before })
}

// outcome returns the required outcome of trigger, or "" if any outcome is valid.
func (c *callback) outcome(how string) string {
	otherwise := func(o, other string) string {
		if o == "" {
			return other
		}
		return o
	}
	switch how {
	case "panics", "panics with nil":
		return c.panics
	case "ends its goroutine":
		return otherwise(c.exits, c.panics)
	case "blocks":
		return otherwise(c.blocks, c.panics)
	case "closes the node":
		return ""
	}
	return otherwise(c.returns, "ok")
}

// outcome returns the outcome of trigger: "gone" if its goroutine ends, "never" if it does not
// return.
func (m *misbehaviour) outcome(trigger func(*misbehaviour) error) string {
	patience := testkit.Patience
	if m.want == "never" {
		patience = 300 * time.Millisecond
	}
	got := make(chan string, 1)
	go func() {
		o := "gone"
		defer func() { got <- o }()
		o = testkit.Outcome(trigger(m))
	}()
	select {
	case o := <-got:
		return o
	case <-time.After(patience):
		return "never"
	}
}

// talk makes a call in each direction.
func (m *misbehaviour) talk(other *asterisque.Session) {
	ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
	defer cancel()
	for _, s := range []*asterisque.Session{other, m.ofNode(other)} {
		_, err := testkit.Echo.Call(ctx, s, "other")
		require.NoError(m.t, err, m.how)
	}
}

// ofNode returns the node's end of s.
func (m *misbehaviour) ofNode(s *asterisque.Session) (end *asterisque.Session) {
	m.settles("the session has begun", func() bool {
		for _, o := range m.node.Sessions() {
			if o.ID() == s.ID() {
				end = o
			}
		}
		return end != nil || s.Err() != nil // the node may have been closed
	})
	return end
}

func (m *misbehaviour) within(what string, f func()) {
	m.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(testkit.Patience):
		buf := make([]byte, 1<<20)
		m.t.Fatalf("%s: %s does not return\n%s", m.how, what, buf[:runtime.Stack(buf, true)])
	}
}

func (m *misbehaviour) settles(what string, ok func() bool) {
	// Polls: the state is in counters, without notification.
	for end := time.Now().Add(testkit.Patience); !ok(); {
		time.Sleep(time.Millisecond) //nolint:forbidigo // counters report no change
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			m.t.Fatalf("%s: it is not so that %s: %d stackLog, goroutines:\n%s", m.how, what, m.log.Load(), buf[:runtime.Stack(buf, true)])
		}
	}
}

// serveAt makes n serve at the URL that is returned, until n is closed.
func serveAt(t *testing.T, n *asterisque.Node) (url string) {
	ln, err := wire.Listen(testkit.Background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	go n.Serve(testkit.Background, ln) // ends with n
	return ln.URL()
}

// patience returns the timeout of a call. It is short where the call is expected to reach it.
// Elsewhere it is longer than any slow machine needs.
func (m *misbehaviour) patience() time.Duration {
	switch {
	case m.want == "expired", m.want == "never":
		return 2 * time.Second
	case m.want == "": // any outcome will do
		return 400 * time.Millisecond
	}
	return testkit.Patience
}

// handshake returns the timeout of a handshake, on the same principle.
func (m *misbehaviour) handshake() time.Duration {
	if m.how == "blocks" {
		return time.Second
	}
	return m.patience()
}

// call makes a call from the peer on a session of its own.
func (m *misbehaviour) call(f func(ctx context.Context, s *asterisque.Session) error) error {
	s, err := m.peer.Dial(testkit.Background, m.nodeURL)
	if err != nil {
		return err
	}
	if m.session.Store(m.ofNode(s)); m.session.Load() == nil {
		return s.Err()
	}
	ctx, cancel := context.WithTimeout(testkit.Background, m.patience())
	defer cancel()
	return f(ctx, s)
}

// callOut makes a call from the node.
func (m *misbehaviour) callOut(f func(ctx context.Context, s *asterisque.Session) error) error {
	return m.call(func(ctx context.Context, _ *asterisque.Session) error { return f(ctx, m.session.Load()) })
}
