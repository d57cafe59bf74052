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
	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/internal/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// mirror is a function whose streams send back what they get, and then stay open.
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
				return // Recv tells why
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

// TestIdle_StreamsLeaveRoomForOthers has a pool of connections on either side that have carried
// something, and stay open.
func TestIdle_StreamsLeaveRoomForOthers(t *testing.T) {
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
				time.Sleep(5 * time.Second) // of the bubble
				for _, s := range []*asterisque.Session{here, there} {
					st := s.Stats().Blocks
					require.LessOrEqual(t, st.Promised, 2*c.streams*4<<10, "no stream holds more than the least window")
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

// TestIdle_FewStreamsKeepAWindow has fewer streams than would need each other's room.
func TestIdle_FewStreamsKeepAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := testkit.InMemory(t, mirrorService())
		p, err := here.Open(testkit.Background, mirror, nil)
		require.NoError(t, err)
		require.NoError(t, carry(p, 100, 15_000))
		before := there.Stats().Blocks.Promised
		time.Sleep(5 * time.Second) // of the bubble
		after := there.Stats().Blocks.Promised
		require.LessOrEqual(t, after, 64<<10)
		require.Less(t, after, before)
		_, err = p.Post(make([]byte, 60_000))
		require.NoError(t, err, "no round trip is needed for it")
		require.NoError(t, carry(p, 100, 15_000), "and it grows again")
		here.Close()
	})
}

// TestIdle_CreditCrossesCuts has streams whose credit goes back over a Wire that loses it, before
// the session goes on over another one.
func TestIdle_CreditCrossesCuts(t *testing.T) {
	every := 25 * time.Millisecond
	if race.Enabled {
		every = 175 * time.Millisecond
	}
	for cut := 900 * time.Millisecond; cut < 2200*time.Millisecond; cut += every {
		synctest.Test(t, func(t *testing.T) {
			conn, wires, _, there := testkit.Link(t, mirrorService(), asterisque.Reconnection{First: 300 * time.Millisecond},
				asterisque.WithResume(asterisque.Resume{For: time.Minute}))
			var pipes []*pipe.Pipe
			for range fewStreams + 8 {
				p, err := conn.Session().Open(testkit.Background, mirror, nil)
				require.NoError(t, err)
				require.NoError(t, carry(p, 5, 15_000))
				pipes = append(pipes, p)
			}
			time.Sleep(cut) // of the bubble
			wires.HalfOpen()
			time.Sleep(1200 * time.Millisecond) // of the bubble
			wires.Cut()
			time.Sleep(4 * time.Second) // of the bubble
			require.LessOrEqual(t, there.Sessions()[0].Stats().Blocks.Promised, len(pipes)*4<<10)
			for _, p := range pipes {
				require.NoError(t, carry(p, 5, 15_000), "cut after %v", cut)
			}
			require.NoError(t, conn.Session().Err())
			conn.Close()
		})
	}
}

// fewStreams are as many as keep a window for themselves.
const fewStreams = 32
