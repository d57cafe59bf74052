package sessions

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// stuckAcceptor is stuckPeerThatSays with the roles exchanged: it returns the session of the side
// that dialled.
func stuckAcceptor(t *testing.T, hello message.Sync, opts ...asterisque.Option) (*testkit.RawPeer, *asterisque.Session) {
	t.Helper()
	p, session := testkit.RawPeerOf(t, (*asterisque.Node).Attach, opts)
	require.IsType(t, message.Sync{}, p.Control())
	hello.Session = make([]byte, message.SessionSize)
	p.Send(hello)
	return p, <-session
}

// A Ping is sent only after silence.
func TestPing_AfterSilenceOnly(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name                       string
		dialled                    bool
		interval, timeout          time.Duration // of this side
		peersInterval, peersTimout time.Duration
		want                       time.Duration // the earliest moment; 0: never
	}{
		{"by default", true, 15 * s, 45 * s, 15 * s, 45 * s, 15 * s},
		{"later on the side that was connected to", false, 15 * s, 45 * s, 15 * s, 45 * s, 18750 * time.Millisecond},
		{"the peer's interval is shorter", true, 15 * s, 45 * s, 4 * s, 45 * s, 4 * s},
		{"this side's is", true, 4 * s, 45 * s, 15 * s, 45 * s, 4 * s},
		{"the peer's timeout is", true, 15 * s, 45 * s, 15 * s, 9 * s, 3 * s},
		{"the peer has no timeout", true, 15 * s, 45 * s, 15 * s, 0, 15 * s},
		{"this side has none", true, -1, 45 * s, 15 * s, 45 * s, 0},
		{"the peer has none", true, 15 * s, 45 * s, 0, 45 * s, 15 * s},
		{"the peer has none, and dialled", false, 15 * s, 45 * s, 0, 0, 18750 * time.Millisecond},
		{"the peer's timeout is below what Pings can keep", true, 15 * s, 45 * s, 15 * s, time.Millisecond, s},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				join := testkit.StuckPeerThatSays
				if c.dialled {
					join = stuckAcceptor
				}
				p, sess := join(t, testkit.HelloWith(c.peersInterval, c.peersTimout), asterisque.WithTimeouts(asterisque.Timeouts{Ping: c.interval, Silence: c.timeout}))
				if c.want == 0 {
					fakeclock.Sleep(time.Hour)
					require.NoError(t, sess.Err(), "a peer that is silent is not given up either")
					sess.Close()
					require.IsType(t, message.Drain{}, p.Control(), "the first frame of all")
					return
				}
				begin := time.Now()
				for n := uint64(1); n < 5; n++ {
					require.IsType(t, message.Ping{}, p.Control())
					silent := time.Since(begin)
					require.GreaterOrEqual(t, silent, c.want)
					require.LessOrEqual(t, silent, c.want+c.want/4, "it is looked for eight times in an interval")
					begin = time.Now()
					p.Send(message.Pong{N: n})
				}
			})
		})
	}
}

// No Ping is sent while other frames flow.
func TestPing_NotBesideFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := stuckAcceptor(t, testkit.HelloWith(15*time.Second, 45*time.Second), asterisque.WithService(testkit.EchoService()))
		for i := range uint64(100) {
			fakeclock.Sleep(14 * time.Second)
			p.Send(&message.Open{Pipe: 1 + 2*i, Function: 10, Params: []byte{0x61, 'x'}})
			require.Equal(t, 1+2*i, p.Close().Pipe, "and no frame besides")
		}
		require.NoError(t, s.Err())
	})
}

// The round trip is measured.
func TestRoundTrip_Measured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wire.Pipe()
		here, there := asterisque.NewNode(), asterisque.NewNode()
		defer here.Close()
		defer there.Close()
		slow := wiretest.Direction{Delay: 20 * time.Millisecond}
		dialled, accepted := asterisquetest.ConnectOver(t, here, there, wiretest.Faulty(a, wiretest.Faults{In: slow, Out: slow}), b)
		require.Zero(t, dialled.Path().RoundTrip)
		fakeclock.Sleep(20 * time.Second)
		require.Equal(t, 40*time.Millisecond, dialled.Path().RoundTrip)
		require.Zero(t, accepted.Path().RoundTrip, "it has sent no Ping")
	})
}

// A round trip is never that of another Ping.
func TestRoundTrip_OfItsPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := stuckAcceptor(t, testkit.HelloWith(15*time.Second, 45*time.Second))
		first, second := p.Control().(message.Ping).N, p.Control().(message.Ping).N
		require.NotEqual(t, first, second)
		fakeclock.Sleep(time.Second)
		p.Send(message.Pong{N: first}, message.Pong{N: second + 1})
		synctest.Wait()
		require.Zero(t, s.Path().RoundTrip)
		fakeclock.Sleep(time.Second)
		p.Send(message.Pong{N: second})
		synctest.Wait()
		require.Equal(t, 2*time.Second, s.Path().RoundTrip)
		fakeclock.Sleep(time.Second)
		p.Send(message.Pong{N: second})
		synctest.Wait()
		require.Equal(t, 2*time.Second, s.Path().RoundTrip, "an answer counts once")
	})
}

// TestLiveness_SilentPeer requires that a session ends if its connection silently drops all bytes
// in both directions.
func TestLiveness_SilentPeer(t *testing.T) {
	for _, first := range []string{"the side that dialled", "the other side"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// This side learns of the loss from the other side, which closes the wire.
				patient := asterisque.WithTimeouts(asterisque.Timeouts{Ping: 15 * time.Second, Silence: time.Hour})
				svc, started, _ := testkit.BlockService()
				here, there := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode(asterisque.WithService(svc), patient)
				defer here.Close()
				defer there.Close()
				a, b := wire.Pipe()
				w := wiretest.Faulty(a, wiretest.Faults{})
				var s *asterisque.Session
				if first == "the side that dialled" {
					s, _ = asterisquetest.ConnectOver(t, here, there, w, b)
				} else {
					_, s = asterisquetest.ConnectOver(t, there, here, b, w)
				}
				call := make(chan error)
				go func() { _, err := testkit.Block.Call(testkit.Background, s, ""); call <- err }()
				<-started
				w.HalfOpen()
				begin := time.Now()
				err := <-call
				require.ErrorIs(t, err, asterisque.ErrUnavailable)
				require.ErrorContains(t, err, "nothing was heard of it for 45s")
				require.False(t, asterisque.Repeatable(err), "it may have run")
				require.ErrorIs(t, s.Err(), asterisque.ErrUnavailable)
				require.InDelta(t, 45, time.Since(begin).Seconds(), 5)
			})
		})
	}
}

// Any byte that arrives is a sign of life.
func TestLiveness_AnyByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
		here, there := net.Pipe()
		p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
		defer p.W.Close()
		defer node.Close()
		go p.Send(testkit.HelloWith(15*time.Second, 45*time.Second))
		go func() { // ends with the connection: the frames are discarded
			io.Copy(io.Discard, here)
		}()
		s, err := node.Accept(testkit.Background, wire.FromConn(there))
		require.NoError(t, err)
		const size, piece = 4 << 20, 40 << 10
		open := testkit.Frames(&message.Open{Function: 10, Params: testkit.RawText(size - 100)})
		for ; len(open) > piece; open = open[piece:] {
			fakeclock.Sleep(2 * time.Second) // for three minutes and a half
			_, err := here.Write(open[:piece])
			require.NoError(t, err, s.Err())
		}
		require.NoError(t, s.Err())
		<-s.Done()
		require.ErrorIs(t, s.Err(), asterisque.ErrUnavailable, "and then there were no more")
	})
}

// A write without progress has a separate timeout.
func TestWrite_StalledTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := testkit.StuckPeerThatSays(t, testkit.HelloWith(15*time.Second, 45*time.Second), asterisque.WithTimeouts(asterisque.Timeouts{Write: 2 * time.Minute}))
		pipe, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		_, err = pipe.Post(make([]byte, 200<<10)) // the wire holds 64 KiB
		require.NoError(t, err)
		begin := time.Now()
		for s.Err() == nil { // the peer lives, and reads nothing
			fakeclock.Sleep(10 * time.Second)
			p.W.WriteFrames([][]byte{message.Ping{}.AppendTo(nil)})
		}
		require.ErrorIs(t, s.Err(), asterisque.ErrUnavailable)
		require.ErrorContains(t, s.Err(), "it has taken nothing for 2m0s")
		require.InDelta(t, 120, time.Since(begin).Seconds(), 20)
	})
}

// A write with little progress continues.
func TestWrite_SlowContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		// this Wire reports its progress each 128 KiB
		node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Write: 10 * time.Second}))
		p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
		defer p.W.Close()
		defer node.Close()
		go p.Send(testkit.HelloWith(15*time.Second, 45*time.Second))
		sessions := make(chan *asterisque.Session, 1)
		go func() { s, _ := node.Accept(testkit.Background, wire.FromConn(there)); sessions <- s }()
		require.IsType(t, message.Sync{}, p.Control())
		s := <-sessions
		pipe, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		const size = 1 << 20
		_, err = pipe.Post(make([]byte, size-1000))
		require.NoError(t, err)
		buf := make([]byte, 64<<10)
		for got := 0; got < size-len(buf); { // a minute, or so
			fakeclock.Sleep(3500 * time.Millisecond)
			go func() { p.W.WriteFrames([][]byte{message.Ping{}.AppendTo(nil)}) }()
			n, err := io.ReadFull(here, buf)
			require.NoError(t, err, s.Err())
			got += n
		}
		require.NoError(t, s.Err())
	})
}

// TestPing_OneSide counts the frames of both sides. The wires count no bytes, so that frames count
// as signs of life.
func TestPing_OneSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wire.Pipe()
		from, back := &controlCounter{Wire: a}, &controlCounter{Wire: b}
		here, there := asterisque.NewNode(), asterisque.NewNode()
		defer here.Close()
		defer there.Close()
		dialled, accepted := asterisquetest.ConnectOver(t, here, there, from, back)
		fakeclock.Sleep(time.Hour)
		require.NoError(t, dialled.Err())
		require.NoError(t, accepted.Err())
		require.InDelta(t, 3600/17, from.pings.Load(), 30)
		require.Equal(t, from.pings.Load(), back.pongs.Load())
		require.Zero(t, back.pings.Load())
	})
}

// controlCounter is a Wire with the five methods alone, and counts written frames.
type controlCounter struct {
	wire.Wire
	pings, pongs, acks, others atomic.Int64
}

func (w *controlCounter) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		c, _ := message.ParseControl(f)
		switch c.(type) {
		case message.Ping:
			w.pings.Add(1)
		case message.Pong:
			w.pongs.Add(1)
		case message.Ack:
			w.acks.Add(1)
		default:
			w.others.Add(1)
		}
	}
	return w.Wire.WriteFrames(frames)
}

// TestPing_PeerCannotForce requires that a peer that requests a Ping each millisecond gets fewer.
func TestPing_PeerCannotForce(t *testing.T) {
	for name, h := range map[string]message.Sync{"interval": testkit.HelloWith(time.Millisecond, 45*time.Second), "timeout": testkit.HelloWith(15*time.Second, time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := testkit.StuckPeerThatSays(t, h)
				_, pings := p.Alive(10 * time.Second)
				fakeclock.Sleep(10 * time.Second)
				require.Less(t, pings.Load(), int64(100))
				require.NoError(t, s.Err())
				s.Close()
			})
		})
	}
}

// A session with a shorter interval is checked in time.
func TestLiveness_ShorterInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Ping: time.Hour, Silence: 10 * time.Hour}))
		defer node.Close()
		for _, interval := range []time.Duration{time.Hour, time.Minute, 10 * time.Second, time.Minute} {
			a, b := wire.Pipe()
			p := &testkit.RawPeer{T: t, W: a}
			defer a.Close()
			go p.Send(testkit.HelloWith(interval, 10*time.Hour))
			_, err := node.Accept(testkit.Background, b)
			require.NoError(t, err)
			p.Control() // the Sync
			begin := time.Now()
			require.IsType(t, message.Ping{}, p.Control())
			require.LessOrEqual(t, time.Since(begin), 2*interval)
			p.Alive(interval)
		}
	})
}
