package sessions

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// spyRepository is a Repository one method of which misbehaves.
type spyRepository struct {
	asterisque.Repository
	m  *misbehaviour
	at string
}

func (r spyRepository) hook(at string) {
	if at == r.at {
		r.m.hook()
	}
}

func (r spyRepository) Put(ctx context.Context, rec asterisque.SessionRecord) error {
	r.hook("put")
	return r.Repository.Put(ctx, rec)
}

func (r spyRepository) Get(ctx context.Context, session asterisque.SessionID) (asterisque.SessionRecord, bool, error) {
	r.hook("get")
	return r.Repository.Get(ctx, session)
}

func (r spyRepository) Delete(ctx context.Context, session asterisque.SessionID) error {
	r.hook("delete")
	return r.Repository.Delete(ctx, session)
}

func spied(at string) func(m *misbehaviour) []asterisque.Option {
	return func(m *misbehaviour) []asterisque.Option {
		return []asterisque.Option{asterisque.WithResume(asterisque.Resume{For: time.Minute, Records: spyRepository{asterisque.NewRepository(), m, at}})}
	}
}

// resumed connects the peer to the node, cuts the wire once, and closes the connection.
func resumed(m *misbehaviour) error {
	ctx, cancel := context.WithTimeout(testkit.Background, 4*m.patience())
	defer cancel()
	wires := make(chan wire.Wire, 10)
	conn, err := m.peer.Connect(ctx, m.nodeURL, asterisque.ReconnectConfig{First: time.Millisecond, Dial: func(ctx context.Context) (wire.Wire, error) {
		w, err := wire.Dial(ctx, m.nodeURL, wire.Options{})
		if err == nil {
			wires <- w
		}
		return w, err
	}})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err = testkit.Echo.Call(ctx, conn, "x"); err != nil {
		return err
	}
	(<-wires).Close()
	for range 2 { // the first one may still be on the way when the session ends
		if _, err = testkit.Echo.Call(ctx, conn, "x"); err == nil {
			break
		}
	}
	return err
}

// spyWire is a Wire one method of which misbehaves.
type spyWire struct {
	wire.Wire
	m  *misbehaviour
	at string
}

func (w spyWire) hook(at string) {
	if at == w.at {
		w.m.hook()
	}
}

func (w spyWire) ReadFrame(most int) ([]byte, error) {
	f, err := w.Wire.ReadFrame(most)
	w.hook("read")
	return f, err
}

func (w spyWire) WriteFrames(frames [][]byte) error {
	w.hook("write")
	return w.Wire.WriteFrames(frames)
}

func (w spyWire) Close() error {
	err := w.Wire.Close()
	w.hook("close")
	return err
}

// overSpy makes a call to the node over a spyWire, and closes the session on that side.
func overSpy(at string) func(m *misbehaviour) error {
	return func(m *misbehaviour) error {
		m.armed.Store(false)
		a, b := wire.Pipe()
		began := make(chan *asterisque.Session, 1)
		go func() {
			s, _ := m.node.Accept(testkit.Background, spyWire{b, m, at})
			began <- s
		}()
		s, err := m.peer.Attach(testkit.Background, a)
		if err != nil {
			return err
		}
		here := <-began
		m.session.Store(here)
		m.armed.Store(m.how != "returns")
		ctx, cancel := context.WithTimeout(testkit.Background, 300*time.Millisecond)
		defer cancel()
		_, err = testkit.Echo.Call(ctx, s, "x")
		here.Close()
		return err
	}
}
