package carrier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

func TestMain(m *testing.M) { leak.Main(m) }

var _ wire.Buffered = (*scripted)(nil)

// scripted is a Wire that a test controls: the test provides the frames to read, and each write is
// one entry of writes.
type scripted struct {
	in     chan []byte
	writes chan [][]byte
	closed chan struct{}
	once   sync.Once

	read  func() // called before a frame is read; may panic
	write func() // called before frames are written; may block
}

func newScripted() *scripted {
	return &scripted{in: make(chan []byte, 100), writes: make(chan [][]byte, 1000), closed: make(chan struct{})}
}

func (w *scripted) ReadFrame(int) ([]byte, error) {
	if w.read != nil {
		w.read()
	}
	select {
	case f, ok := <-w.in:
		if ok {
			return f, nil
		}
		return nil, io.EOF
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *scripted) WriteFrames(frames [][]byte) error {
	if w.write != nil {
		w.write()
	}
	select {
	case <-w.closed:
		return net.ErrClosed
	default:
	}
	var own [][]byte
	for _, f := range frames {
		own = append(own, append([]byte(nil), f...))
	}
	w.writes <- own
	return nil
}

func (w *scripted) Buffered() bool          { return len(w.in) > 0 }
func (w *scripted) Keep() *transport.Buffer { return nil }
func (w *scripted) Close() error            { w.once.Do(func() { close(w.closed) }); return nil }
func (w *scripted) LocalAddr() net.Addr     { return &net.UnixAddr{Name: "here"} }
func (w *scripted) RemoteAddr() net.Addr    { return &net.UnixAddr{Name: "there"} }

// says makes messages arrive.
func (w *scripted) says(messages ...interface{ AppendTo([]byte) []byte }) {
	for _, m := range messages {
		w.in <- m.AppendTo(nil)
	}
}

// types returns the types of the messages in one write.
func types(t *testing.T, frames [][]byte) (all []message.Type) {
	for _, f := range frames {
		k, err := message.TypeOf(f)
		require.NoError(t, err)
		all = append(all, k)
	}
	return all
}

// session is a Receiver and Session that records its calls.
type session struct {
	mu        sync.Mutex
	story     []string
	receive   func(t message.Type, frame []byte) error
	admit     func(h message.Head, others carrier.Unfinished) (carrier.Admission, priority.Priority, error)
	stray     func(pipe uint64) error
	ended     func(cause *codec.Abort)
	changed   chan struct{}
	blockPart func(pipe uint64, got int) (granted int, use carrier.Admission)
	blockIdle func(pipe uint64, late bool) bool
}

func (s *session) LogValue() slog.Value { return slog.StringValue("s") }

func (s *session) tell(what string) {
	s.mu.Lock()
	s.story = append(s.story, what)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *session) Receive(t message.Type, frame []byte, age time.Duration) error {
	defer s.tell(t.String())
	if s.receive != nil {
		return s.receive(t, frame)
	}
	return nil
}

func (s *session) Admit(h message.Head, _ int, others carrier.Unfinished) (carrier.Admission, priority.Priority, error) {
	defer s.tell(fmt.Sprintf("%v begins", h.Type))
	if s.admit != nil {
		return s.admit(h, others)
	}
	return carrier.Admitted, 0, nil
}

func (s *session) Stray(pipe uint64) error {
	defer s.tell("stray")
	if s.stray != nil {
		return s.stray(pipe)
	}
	return nil
}

func (s *session) Ended(cause *codec.Abort) {
	if s.ended != nil {
		s.ended(cause)
	}
	s.tell("ended")
}
func (s *session) Away(*codec.Abort)    { s.tell("away") }
func (s *session) GivenUp(message.Head) {}

// BlockPart grants all credit, unless blockPart is set.
func (s *session) BlockPart(pipe uint64, got int) (granted int, use carrier.Admission, err error) {
	if s.blockPart == nil {
		return math.MaxInt, carrier.Admitted, nil
	}
	granted, use = s.blockPart(pipe, got)
	return granted, use, nil
}

func (s *session) BlockIdle(pipe uint64, late bool) bool {
	return s.blockIdle == nil || s.blockIdle(pipe, late)
}
func (s *session) Relieve() bool { return false }
func (s *session) StillAway()    {}
func (s *session) Back()         { s.tell("back") }
func (s *session) Finished()     { s.tell("finished") }

// rig is a Carrier over a scripted Wire.
type rig struct {
	carrier.Carrier
	up       *session
	t        *testing.T
	wire     *scripted
	settings carrier.Settings
	lookout  carrier.KeepaliveScheduler
	inbound  *flow.Counter
	ctx      context.Context
	born     time.Time
}

// newRig returns a Carrier that does not run yet. change, which may be nil, changes its
// configuration.
func newRig(t *testing.T, change func(*carrier.Config)) *rig {
	r := &rig{t: t, wire: newScripted(), up: &session{changed: make(chan struct{}, 1)}, born: time.Now()}
	r.settings = carrier.Settings{
		Log: slog.New(slog.DiscardHandler), WriteTimeout: time.Minute, Stall: time.Minute, ResumeFor: time.Minute,
		Now: func() time.Duration { return time.Since(r.born) + 1 }, Keepalive: &r.lookout,
	}
	soft := limits.Limits{Soft: limits.Amount{Messages: 2}, Hard: limits.Amount{Messages: 8}}
	in, err := soft.Check()
	require.NoError(t, err)
	out, err := limits.Limits{}.Check()
	require.NoError(t, err)
	r.inbound = flow.NewCounter(&in, func(s limits.State) { r.InboundChanged(s) })
	outbound := flow.NewCounter(&out, func(limits.State) {})
	ctx, end := context.WithCancelCause(context.Background())
	r.ctx = ctx
	cfg := carrier.Config{
		Settings: &r.settings, Receiver: r.up, Session: r.up, Context: ctx, End: end, Wire: r.wire,
		Out:     outbox.New(0, 1<<20, 512, 0, outbound.Remove, nil),
		Inbound: r.inbound, Outbound: outbound, Tally: flow.NewTally(0), Largest: 1 << 20,
	}
	if change != nil {
		change(&cfg)
	}
	r.Init(&cfg)
	t.Cleanup(func() {
		r.End(codec.ErrSessionClosed)
		r.wire.Close()
		r.Wait()
		r.lookout.End()
	})
	return r
}

// run starts the Carrier.
func (r *rig) run() *rig {
	r.Run()
	return r
}

// patience is the longest time that a test waits for an expected event.
const patience = 20 * time.Second

// wantStory waits until the session has recorded exactly this story.
func (r *rig) wantStory(want ...string) {
	r.t.Helper()
	for {
		r.up.mu.Lock()
		story := append([]string(nil), r.up.story...)
		r.up.mu.Unlock()
		if len(story) >= len(want) {
			require.Equal(r.t, want, story)
			return
		}
		select {
		case <-r.up.changed:
		case <-time.After(patience):
			require.Equal(r.t, want, story, "all that came within %v", patience)
		}
	}
}

// sends puts a Close for a pipe that the peer has opened.
func (r *rig) sends(id uint64, when carrier.When) error {
	f := outbox.AcceptedFlow(0, id)
	return r.Put(&f, &outbox.Message{Type: message.CloseType, Payload: []byte{1}}, when)
}

// resumable is a change for newRig: the session can resume.
func resumable(cfg *carrier.Config) { cfg.Resumes, cfg.KeptControls = true, 1<<20 }

// open returns an Open of the peer.
func open(id uint64) *message.Open { return &message.Open{Pipe: id, Function: 1} }

var errNo = errors.New("no")
