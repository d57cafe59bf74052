package streams

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// outgoing is a connection that inspects the outgoing frames.
type outgoing struct {
	net.Conn // fixed

	mu     sync.Mutex
	rest   []byte // of a frame that has not left as a whole; guarded by mu, as all below
	parts  int    // bytes of the parts that have left
	before int    // what parts was when something urgent was about to be put; -1: nothing is
	at     time.Time
	front  []int // bytes of parts for which something urgent has waited
}

func (o *outgoing) Write(b []byte) (int, error) {
	o.mu.Lock()
	leaving := 0
	o.rest = append(o.rest, b...)
	for len(o.rest) >= 4 && len(o.rest) >= 4+int(binary.BigEndian.Uint32(o.rest)) {
		frame := o.rest[4 : 4+binary.BigEndian.Uint32(o.rest)]
		o.rest = o.rest[4+len(frame):]
		switch kind, _ := message.TypeOf(frame); {
		case kind == message.PartType:
			leaving += len(frame)
		case kind != message.ControlType && o.before >= 0:
			waited := o.parts + leaving - o.before
			if time.Since(o.at) == 0 {
				waited = 0 // the parts left while it was on its way to be put
			}
			o.front, o.before = append(o.front, waited), -1
		}
	}
	o.mu.Unlock()
	n, err := o.Conn.Write(b)
	o.mu.Lock()
	o.parts += leaving
	o.mu.Unlock()
	return n, err
}

// puts is called before an urgent message is queued.
func (o *outgoing) puts() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.before, o.at = o.parts, time.Now()
}

// seen returns the bytes of parts that were sent ahead of each urgent message, and the bytes of all
// parts.
func (o *outgoing) seen() (front []int, parts int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.front), o.parts
}

// TestParts_EchoBeside makes both sides send results of 4 MB at a low priority over a link of 1
// MB/s, and requires that an echo waits for at most one part.
func TestParts_EchoBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := wiretest.Lane{Rate: 1 << 20, Delay: 5 * time.Millisecond}
		a, b := wiretest.NewLink(wiretest.LinkConfig{Out: lane, In: lane, Buffer: 64 << 10}).Pipe()
		ends := []*outgoing{{Conn: a, before: -1}, {Conn: b, before: -1}}
		svc := asterisque.NewService()
		svc.Handle(1, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 4_000_000), nil })
		svc.Handle(2, "urgent", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
			ends[1].puts()
			return []byte("here"), nil
		})
		here, there := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		s, peer := asterisquetest.ConnectOver(t, here, there, wire.FromConn(ends[0]), wire.FromConn(ends[1]))
		for _, from := range []*asterisque.Session{s, peer} {
			for range 2 {
				go func() { // ends with the nodes
					for from.Err() == nil {
						from.Call(testkit.Background, 1, nil, asterisque.WithPriority(-1))
					}
				}()
			}
		}
		synctest.Wait()
		for range 100 {
			ends[0].puts()
			_, err := s.Call(testkit.Background, 2, nil, asterisque.WithPriority(1))
			require.NoError(t, err)
		}
		for _, o := range ends {
			front, parts := o.seen()
			require.GreaterOrEqual(t, len(front), 100)
			most := slices.Max(front)
			t.Logf("at most %d bytes of %d in front", most, parts)
			require.LessOrEqual(t, most, 64<<10+32)
			require.Greater(t, parts, 1<<20)
		}
	})
}

// TestParts_OtherWires sends results and parameters of a megabyte while the wire is cut repeatedly,
// even between two parts.
func TestParts_OtherWires(t *testing.T) {
	svc := testkit.EchoService()
	svc.Handle(1, "same", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return params, nil })
	conn, wires := testkit.Lasting(t, svc, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	const callers, calls = 3, 6
	done := make(chan error, callers)
	for n := range callers {
		go func() { // ends with its calls
			params := make([]byte, 1<<20)
			for i := range params {
				params[i] = byte(i>>8 + n)
			}
			for range calls {
				result, err := conn.Call(testkit.Background, 1, params, asterisque.WithPriority(priority.Priority(n)))
				if err == nil && !bytes.Equal(params, result) {
					err = errors.New("another result")
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	cuts := 0
	for left := callers; left > 0; {
		select {
		case err := <-done:
			require.NoError(t, err)
			left--
		case <-time.After(3 * time.Millisecond): // anywhere between two parts
			if s := conn.Session(); s != nil && !s.Away() {
				wires.Cut()
				cuts++
			}
		}
	}
	t.Logf("%d cuts", cuts)
	s := conn.Session()
	testkit.Settled(t, func() bool { return s.Stats().Receiving == 0 })
}
