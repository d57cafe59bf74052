package streams

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// mirror is a function with streams that send back their input, and then stay open.
const mirror = 70

func mirrorService() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(mirror, "mirror", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			if err := p.Send(ctx, b.Payload); err != nil {
				return nil, err
			}
		}
	})
	return svc
}

// carry sends blocks Blocks of size bytes both ways.
func carry(p *pipe.Pipe, blocks, size int) error {
	var sending sync.WaitGroup
	sending.Go(func() {
		for range blocks {
			if p.Send(testkit.Background, make([]byte, size)) != nil {
				return // Recv returns the reason
			}
		}
	})
	defer sending.Wait()
	for range blocks {
		if _, err := p.Recv(testkit.Background); err != nil {
			return err
		}
	}
	return nil
}

// TestIdle_LeaveRoom requires that idle streams that have carried data leave room for other
// streams, as the connections of a pool on either side do.
func TestIdle_LeaveRoom(t *testing.T) {
	const blocks = 20
	for name, c := range map[string]struct{ streams, size int }{
		"that carried 300 KB":    {testkit.Long(400, 1000), 15_000},
		"that carried 200 bytes": {1000, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := testkit.InMemory(t, mirrorService(), asterisque.WithService(mirrorService()))
				if race.Enabled {
					c.streams /= 4
				}
				for range c.streams {
					for _, s := range []*asterisque.Session{here, there} {
						before := time.Now()
						p, err := s.Open(testkit.Background, mirror, nil)
						require.NoError(t, err)
						require.Less(t, time.Since(before), 5*time.Second)
						require.NoError(t, carry(p, blocks, c.size))
					}
				}
				fakeclock.Sleep(5 * time.Second)
				for _, s := range []*asterisque.Session{here, there} {
					st := s.Stats().Classes.Windows()
					require.LessOrEqual(t, st.Held, 2*c.streams*4<<10, "no stream holds more than the least window")
				}
				before := time.Now()
				p, err := here.Open(testkit.Background, mirror, nil)
				require.NoError(t, err)
				require.NoError(t, carry(p, blocks, 15_000), "the next one has a window as the first had")
				require.Less(t, time.Since(before), time.Second)
				here.Close()
			})
		})
	}
}

// TestIdle_FewStreamsKeepAWindow requires that streams keep a full window while so few are open
// that none needs the window of another.
func TestIdle_FewStreamsKeepAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := testkit.InMemory(t, mirrorService())
		p, err := here.Open(testkit.Background, mirror, nil)
		require.NoError(t, err)
		require.NoError(t, carry(p, 100, 15_000))
		before := there.Stats().Classes.Windows().Held
		fakeclock.Sleep(5 * time.Second)
		after := there.Stats().Classes.Windows().Held
		require.LessOrEqual(t, after, 64<<10)
		require.Less(t, after, before)
		require.Greater(t, after, 4<<10)
		_, err = p.Post(make([]byte, 60_000))
		require.NoError(t, err, "no round trip is needed for it")
		_, err = p.Recv(testkit.Background)
		require.NoError(t, err)
		require.NoError(t, carry(p, 100, 15_000), "and it grows again")
		fakeclock.Sleep(20 * time.Second)
		require.LessOrEqual(t, there.Stats().Classes.Windows().Held, 4<<10, "not for ever")
		here.Close()
	})
}

// TestIdle_CreditCrossesCuts uses streams that return credit over a Wire that loses it, before the
// session continues over another one.
func TestIdle_CreditCrossesCuts(t *testing.T) {
	every := 25 * time.Millisecond
	if race.Enabled {
		every = 175 * time.Millisecond
	}
	for cut := 900 * time.Millisecond; cut < 2200*time.Millisecond; cut += every {
		synctest.Test(t, func(t *testing.T) {
			conn, wires, _, there := testkit.Link(t, mirrorService(), asterisque.ReconnectConfig{First: 300 * time.Millisecond},
				asterisque.WithResume(asterisque.Resume{For: time.Minute}))
			var pipes []*pipe.Pipe
			for range fewStreams + 8 {
				p, err := conn.Session().Open(testkit.Background, mirror, nil)
				require.NoError(t, err)
				require.NoError(t, carry(p, 5, 15_000))
				pipes = append(pipes, p)
			}
			fakeclock.Sleep(cut)
			wires.HalfOpen()
			fakeclock.Sleep(1200 * time.Millisecond)
			wires.Cut()
			fakeclock.Sleep(4 * time.Second)
			require.LessOrEqual(t, there.Sessions()[0].Stats().Classes.Windows().Held, len(pipes)*4<<10)
			for _, p := range pipes {
				require.NoError(t, carry(p, 5, 15_000), "cut after %v", cut)
			}
			require.NoError(t, conn.Session().Err())
			conn.Close()
		})
	}
}

// TestIdle_LittleRoomIsLeftToOthers has as many streams as have room for the least window, one
// after the other, and fewer than would hand all back at once.
func TestIdle_LittleRoomIsLeftToOthers(t *testing.T) {
	for name, c := range map[string]struct {
		inbound, workers, streams int
		later                     int // the soft limit of the second half
	}{
		"of 1 MiB":                    {1 << 20, 8, 14, 1 << 20},
		"of 256 KiB":                  {256 << 10, 8, 12, 256 << 10},
		"of 13 MiB, which were 32":    {32 << 20, 1024, 58, 13 << 20},
		"of 13 MiB and large windows": {32 << 20, 8, 58, 13 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here := testkit.NewNode(t, asterisque.WithWorkers(asterisque.Workers{Session: c.workers}), asterisque.WithLimits(asterisque.Limits{
					Inbound: testkit.BytesOf(c.inbound, 8*c.inbound), MaxMessage: 32 << 10,
				}))
				s, _ := asterisquetest.ConnectNodes(t, here, testkit.NewNode(t, asterisque.WithService(mirrorService())))
				for n := range c.streams {
					if n == c.streams/2 {
						require.NoError(t, s.SetLimits(testkit.BytesOf(c.later, 8*c.inbound), limits.Limits{}))
					}
					ctx, cancel := context.WithCancel(testkit.Background)
					defer cancel()
					late := time.AfterFunc(15*time.Second, cancel)
					p, err := s.Open(ctx, mirror, nil)
					require.NoError(t, err, "stream %d", n)
					late.Stop()
					require.NoError(t, carry(p, 50, 15_000))
					fakeclock.Sleep(3 * time.Second)
				}
				here.Close()
			})
		})
	}
}

// TestIdle_CreditOfBlocksThatWereNotSent has a stream whose Blocks use up all its credit, and
// expire before they are sent: the peer does not read meanwhile.
func TestIdle_CreditOfBlocksThatWereNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := testkit.InMemory(t, mirrorService())
		p, err := here.Open(testkit.Background, mirror, nil)
		require.NoError(t, err)
		require.NoError(t, carry(p, 400, 15_000))
		there.StopReading()
		for err == nil {
			_, err = p.Post(make([]byte, 3000), pipe.WithTTL(5*time.Second))
		}
		fakeclock.Sleep(20 * time.Second)
		there.StartReading()
		fakeclock.Sleep(20 * time.Second)
		require.LessOrEqual(t, there.Stats().Classes.Windows().Held, 256<<10, "little more than what waits there")
		here.Close()
	})
}

// TestIdle_BlockBehindASkip has a stream that is used once more while what would hand its credit
// back waits for a peer that does not read.
func TestIdle_BlockBehindASkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := mirrorService()
		svc.Handle(mirror+1, "waits", testkit.WaitForContext)
		here, there := testkit.InMemory(t, svc)
		p, err := here.Open(testkit.Background, mirror, nil)
		require.NoError(t, err)
		require.NoError(t, carry(p, 400, 15_000))
		others := make([]*pipe.Pipe, 30)
		for i := range others {
			others[i], err = here.Open(testkit.Background, mirror+1, nil)
			require.NoError(t, err)
		}
		fakeclock.Sleep(100 * time.Millisecond) // in which they get credit
		there.StopReading()
		for _, q := range others {
			for err := error(nil); err == nil; {
				_, err = q.Post(make([]byte, 3000))
			}
		}
		fakeclock.Sleep(3500 * time.Millisecond)
		require.Positive(t, here.Stats().Outbound.Messages)
		_, err = p.Post(make([]byte, 100))
		require.NoError(t, err)
		there.StartReading()
		require.NoError(t, there.Err())
		fakeclock.Sleep(20 * time.Second)
		require.LessOrEqual(t, there.Stats().Classes.Windows().Held, len(others)*(4<<10+64<<10)+4<<10)
		here.Close()
	})
}

// fewStreams are as many as keep a window for themselves.
const fewStreams = 32
