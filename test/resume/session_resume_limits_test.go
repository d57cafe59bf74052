package resume

import (
	"context"
	"crypto/tls"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// Unacknowledged frames are bounded by the outbound limits.
func TestResume_UnackedBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(append(testkit.NoWindows(), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}), asterisque.WithLimits(asterisque.Limits{Outbound: testkit.Messages(100, 200)}))...)
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Resumable())
		synctest.Wait() // the session has begun on that side as well
		s := node.Sessions()[0]
		stream, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		sent := 1
		for ; ; sent++ {
			ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
			err := stream.Send(ctx, []byte("x"))
			cancel()
			if err != nil {
				require.ErrorIs(t, err, asterisque.ErrExpired)
				break
			}
			p.Collect(1)
			if sent == 1 {
				p.Collect(1) // the Open
			}
		}
		require.Equal(t, 100, sent, "the peer has read everything, and acknowledged nothing")
		require.Equal(t, limits.Soft, s.Stats().OutboundState)
		p.Send(message.Ack{Count: 100})
		synctest.Wait()
		require.Zero(t, s.Stats().Outbound)
		require.NoError(t, stream.Send(testkit.Background, []byte("x")))
		p.Collect(1)
		p.Send(message.Ack{Count: 102})
		p.WantSessionClose(codec.Protocol, "Ack of 102 frames, which is more than were sent")
	})
}

// Acks are sent in batches.
func TestResume_AcksInBatches(t *testing.T) {
	svc := asterisque.NewService()
	svc.Handle(50, "take", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for {
			if _, err := p.Recv(ctx); err != nil {
				return nil, nil
			}
		}
	})
	join := func(t *testing.T) *testkit.RawPeer {
		node := asterisque.NewNode(append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))...)
		t.Cleanup(func() { node.Close() })
		p, _ := testkit.RawTo(t, node, testkit.Resumable())
		return p
	}
	t.Run("few under load", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := join(t)
			const blocks = 10_000
			go func() {
				batch := [][]byte{(&message.Open{Function: 50, Meta: message.Meta{Stream: true}}).AppendTo(nil)}
				for range blocks {
					batch = append(batch, (&message.Block{Payload: []byte("x")}).AppendTo(nil))
				}
				p.W.WriteFrames(append(batch, (&message.Block{End: true}).AppendTo(nil)))
			}()
			acks, last := p.Collect(1) // the Close
			for last < blocks+2 {
				a := p.Control().(message.Ack)
				require.Greater(t, a.Count, last)
				last = a.Count
				acks++
			}
			require.EqualValues(t, blocks+2, last)
			require.LessOrEqual(t, acks, blocks/256+2, "one for 256 frames, one for the rest, one with the Close")
		})
	})
	t.Run("soon if nothing else is sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := join(t)
			for n := range uint64(10) {
				begin := time.Now()
				if n == 0 {
					p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
				} else {
					p.Send(&message.Block{Payload: []byte("x")})
				}
				require.Equal(t, message.Ack{Count: n + 1}, p.Control())
				require.LessOrEqual(t, time.Since(begin), 20*time.Millisecond)
				fakeclock.Sleep(time.Second)
			}
		})
	})
	t.Run("large frames count for more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := join(t)
			go func() {
				p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
				for range 16 {
					p.Send(&message.Block{Payload: make([]byte, 128<<10)})
				}
			}()
			begin := time.Now()
			for last := uint64(0); last < 15; {
				last = p.Control().(message.Ack).Count
			}
			require.LessOrEqual(t, time.Since(begin), 200*time.Millisecond)
		})
	})
	t.Run("none without the feature", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			node := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
			defer node.Close()
			p, reply := testkit.RawTo(t, node, testkit.Hello())
			require.Empty(t, reply.Secret)
			p.Send(&message.Open{Function: 10, Params: []byte{0x61, 'x'}})
			p.Close()
			fakeclock.Sleep(time.Hour)
			p.Send(message.Ping{N: 1})
			require.Equal(t, message.Pong{N: 1}, p.Control())
		})
	})
}

// TestResume_HeldUpSession requires that a session that does not read when its wire fails can be
// resumed.
func TestResume_HeldUpSession(t *testing.T) {
	for name, hold := range map[string]func(s *asterisque.Session) (release func()){
		"at its soft limit": func(*asterisque.Session) func() { return func() {} },
		"paused":            func(s *asterisque.Session) func() { s.StopReading(); return s.StartReading },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, gate, running, took := testkit.GatedService()
				opts := append(testkit.NoWindows(), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(10, 100)}))
				conn, l, _, there := testkit.Link(t, svc, asterisque.ReconnectConfig{}, opts...)
				p, err := conn.Open(testkit.Background, 50, nil)
				require.NoError(t, err)
				<-running
				release := hold(there.Sessions()[0])
				for range 50 {
					require.NoError(t, p.Send(testkit.Background, []byte("x")))
				}
				synctest.Wait()
				for range 3 {
					l.Cut()
					fakeclock.Sleep(10 * time.Second)
					require.Equal(t, asterisque.Connected, conn.State())
				}
				close(gate)
				release()
				require.NoError(t, p.CloseSend())
				_, err = p.Result(testkit.Background)
				require.NoError(t, err)
				require.EqualValues(t, 50, took.Load())
			})
		})
	}
}

// Both sides give up a peer that is away for too long.
func TestResume_AwayTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ended, running := make(chan error, 1), make(chan struct{}, 1)
		svc.Handle(50, "wait", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			running <- struct{}{}
			_, err := p.Recv(testkit.Background)
			ended <- err
			return nil, err
		})
		conn, l, here, there := testkit.Link(t, svc, asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		before := conn.Session()
		p, err := conn.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		<-running
		begin := time.Now()
		l.FailWith(testkit.ErrBroken)
		l.Cut()
		_, err = p.Result(testkit.Background)
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.ErrorContains(t, err, "did not come back within 1m0s")
		require.ErrorIs(t, <-ended, asterisque.ErrUnavailable)
		require.Equal(t, time.Minute, time.Since(begin))
		synctest.Wait()
		require.Empty(t, here.Sessions())
		require.Empty(t, there.Sessions())
		require.ErrorIs(t, before.Err(), asterisque.ErrUnavailable)
		require.Equal(t, asterisque.Reconnecting, conn.State(), "the connection keeps dialling")
		l.FailWith(nil)
		_, err = conn.Call(testkit.Background, 1, nil)
		require.ErrorIs(t, err, asterisque.ErrNoFunction)
		require.NotSame(t, before, conn.Session())
	})
}

// TestAway_EndIsPrompt ends either side while the session has no wire; synctest checks that nothing
// stays behind.
func TestAway_EndIsPrompt(t *testing.T) {
	for name, end := range map[string]func(c *asterisque.Connection, here, there *asterisque.Node){
		"the session":           func(c *asterisque.Connection, _, _ *asterisque.Node) { c.Session().Close() },
		"the connection":        func(c *asterisque.Connection, _, _ *asterisque.Node) { c.Close() },
		"the node that dialled": func(_ *asterisque.Connection, here, _ *asterisque.Node) { here.Close() },
		"the other node":        func(_ *asterisque.Connection, _, there *asterisque.Node) { there.Close() },
		"the other session":     func(_ *asterisque.Connection, _, there *asterisque.Node) { there.Sessions()[0].Close() },
		"all at once": func(c *asterisque.Connection, here, there *asterisque.Node) {
			var wg sync.WaitGroup
			wg.Go(func() { c.Close() })
			wg.Go(func() { here.Close() })
			wg.Go(func() { there.Close() })
			wg.Wait()
		},
		"the connection, by Shutdown": func(c *asterisque.Connection, _, _ *asterisque.Node) { c.Shutdown(testkit.Canceled()) },
		"the nodes, by Shutdown": func(_ *asterisque.Connection, here, there *asterisque.Node) {
			here.Shutdown(testkit.Canceled())
			there.Shutdown(testkit.Canceled())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, started, _ := testkit.BlockService()
				conn, l, here, there := testkit.Link(t, svc, asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Hour}))
				call := make(chan error)
				go func() { _, err := testkit.Block.Call(testkit.Background, conn, ""); call <- err }()
				<-started
				l.FailWith(testkit.ErrBroken)
				l.Cut()
				fakeclock.Sleep(time.Minute)
				require.Equal(t, asterisque.Reconnecting, conn.State())
				begin := time.Now()
				end(conn, here, there)
				require.Zero(t, time.Since(begin))
				if !strings.Contains(name, "other") {
					require.Error(t, <-call)
					require.Zero(t, time.Since(begin))
					if name != "the session" {
						<-conn.Done()
						require.Zero(t, time.Since(begin))
					}
				}
				conn.Close()
				here.Close()
				there.Close()
				if strings.Contains(name, "other") {
					<-call
				}
			})
		})
	}
}

// A shutdown of a suspended session finishes after the peer is back.
func TestAway_ShutdownWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, gate, running, _ := testkit.GatedService()
		conn, l, _, there := testkit.Link(t, svc, asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Hour}), testkit.DrainOf(time.Hour))
		p, err := conn.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		<-running
		l.FailWith(testkit.ErrBroken)
		l.Cut()
		fakeclock.Sleep(time.Minute)
		done := make(chan error)
		go func() { done <- there.Sessions()[0].Shutdown(testkit.Background) }()
		require.NoError(t, p.CloseSend())
		close(gate)
		fakeclock.Sleep(time.Minute)
		require.Empty(t, done)
		l.FailWith(nil)
		_, err = p.Result(testkit.Background)
		require.NoError(t, err, "the answer is not lost")
		require.NoError(t, <-done)
	})
}

// TestResume_LastCertificate requires that a session ends with the newest certificate of its
// server, which renews the certificate before the first one expires.
func TestResume_LastCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testtls.NewAuthority(t)
		brief, renewed := ca.Issue("brief", 3*time.Second), ca.Issue("renewed", time.Hour)
		var shown atomic.Pointer[tls.Certificate]
		shown.Store(&brief)
		server := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shown.Load(), nil }}
		resume := asterisque.WithResume(asterisque.Resume{For: time.Minute})
		there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), resume)
		lines := make(chan wire.Wire, 2)
		conn, err := testkit.NewNode(t, resume).Connect(testkit.Background, "", asterisque.ReconnectConfig{First: time.Millisecond, Dial: func(context.Context) (wire.Wire, error) {
			a, b := testkit.TLSPipe(ca.Client(), server)
			go there.Accept(testkit.Background, b) // ends with the handshake
			lines <- a
			return a, nil
		}})
		require.NoError(t, err)
		defer conn.Close()
		s := conn.Session()
		first := s.Peer().Certificate()
		require.Equal(t, "brief", first.Subject.CommonName)

		shown.Store(&renewed)
		(<-lines).Close()
		_, err = testkit.Echo.Call(testkit.Background, conn, "resumed")
		require.NoError(t, err)
		require.Equal(t, "renewed", s.Peer().Certificate().Subject.CommonName)
		fakeclock.Sleep(time.Until(first.NotAfter) + time.Minute)
		_, err = testkit.Echo.Call(testkit.Background, s, "still good")
		require.NoError(t, err)
		require.Same(t, s, conn.Session())
	})
}

// TestResume_OtherIdentity requires that a client with another certificate of the same authority
// cannot resume the session.
func TestResume_OtherIdentity(t *testing.T) {
	ca := testtls.NewAuthority(t)
	server := ca.Server()
	there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithTLS(server), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	url := testkit.Listen(t, there, "tls://127.0.0.1:0", wire.Options{TLS: server})
	here := testkit.NewNode(t, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	var mu sync.Mutex
	var config *tls.Config
	var last wire.Wire
	as := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		config = ca.Client(ca.Issue(name, time.Hour))
	}
	alice := ca.Client(ca.Issue("alice", time.Hour))
	config = alice
	conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{First: time.Millisecond, Dial: func(ctx context.Context) (wire.Wire, error) {
		mu.Lock()
		defer mu.Unlock()
		w, err := wire.Dial(ctx, url, wire.Options{TLS: config})
		last = w
		return w, err
	}})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	cut := func() {
		mu.Lock()
		last.Close()
		mu.Unlock()
	}
	first := conn.Session()
	cut()
	_, err = testkit.Echo.Call(testkit.Background, conn, "")
	require.NoError(t, err)
	require.Same(t, first, conn.Session(), "the same certificate")

	as("bob")
	cut()
	<-first.Done()
	require.ErrorIs(t, first.Err(), asterisque.ErrUnavailable)
	_, err = testkit.Echo.Call(testkit.Background, conn, "")
	require.NoError(t, err, "bob has a session of his own")
	require.NotSame(t, first, conn.Session())
}
