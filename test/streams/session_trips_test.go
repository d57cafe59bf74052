package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// trip is the round-trip time of distant.
const trip = 50 * time.Millisecond

// distant returns a session over a path without a bottleneck, to a node that offers svc. It is for
// synctest, where computation at both ends takes no time.
func distant(t *testing.T, svc *asterisque.Service) *asterisque.Session {
	t.Helper()
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { here.Close(); there.Close() })
	way := wiretest.Lane{Delay: trip / 2}
	a, b := wiretest.NewLink(wiretest.LinkConfig{Out: way, In: way}).Pipe()
	s, _ := asterisquetest.ConnectOver(t, here, there, wire.FromConn(a), wire.FromConn(b))
	return s
}

// pass is one end of a stream: it sends a number of bytes, and receives to the end, in some way.
type pass struct {
	send func(p *pipe.Pipe, bytes int) error
	// receive calls first when the first byte has arrived.
	receive func(p *pipe.Pipe, first func()) error
}

// asBlocks sends Blocks of size bytes.
func asBlocks(size int) pass {
	return pass{
		func(p *pipe.Pipe, bytes int) error {
			for range bytes / size {
				if err := p.Send(testkit.Background, make([]byte, size)); err != nil {
					return err
				}
			}
			return p.CloseSend()
		},
		func(p *pipe.Pipe, first func()) error {
			for {
				b, err := p.Recv(testkit.Background)
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				first()
				b.Release()
			}
		},
	}
}

// asBytes sends bytes with package stream.
func asBytes() pass {
	return pass{
		func(p *pipe.Pipe, bytes int) error {
			w := stream.NewWriter(p)
			if _, err := w.Write(make([]byte, bytes)); err != nil {
				return err
			}
			return w.Close()
		},
		func(p *pipe.Pipe, first func()) error {
			r := stream.NewReader(p)
			if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
				return err
			}
			first()
			_, err := io.Copy(io.Discard, r)
			return err
		},
	}
}

// TestTrips_StreamOfSomeKiB sends some KiB, and as many back after all have arrived. A stream takes
// extra credit when it is opened, and needs no further round trip.
func TestTrips_StreamOfSomeKiB(t *testing.T) {
	for _, c := range []struct {
		size, block int // of which each costs 512 bytes besides; 0: bytes
	}{{16 << 10, 256}, {16 << 10, 1 << 10}, {16 << 10, 16 << 10}, {16 << 10, 0}, {56 << 10, 4 << 10}, {63 << 10, 63 << 10}, {63 << 10, 0}} {
		by, size := asBytes(), c.size
		if c.block > 0 {
			by = asBlocks(c.block)
		}
		t.Run(fmt.Sprintf("%d bytes in Blocks of %d", size, c.block), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := asterisque.NewService()
				svc.Handle(60, "answer", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
					if err := by.receive(p, func() {}); err != nil {
						return nil, err
					}
					return nil, by.send(p, size)
				})
				s := distant(t, svc)
				begin := time.Now()
				var first time.Duration
				p, err := s.Open(testkit.Background, 60, nil)
				require.NoError(t, err)
				require.NoError(t, by.send(p, size))
				require.NoError(t, by.receive(p, func() {
					if first == 0 {
						first = time.Since(begin)
					}
				}))
				require.Equal(t, trip, first)
				require.Equal(t, trip, time.Since(begin), "the end of the answer")
			})
		})
	}
}

// TestTrips_Calls has many callers, each with one call at a time, that begin together in groups.
// Batching their calls into common frames and system calls delays none of them.
func TestTrips_Calls(t *testing.T) {
	const callers, calls = 64, 20
	synctest.Test(t, func(t *testing.T) {
		s := distant(t, testkit.EchoService())
		text := strings.Repeat("*", 64)
		took := make([]time.Duration, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				fakeclock.Sleep(time.Duration(i/4) * 777 * time.Microsecond)
				begin := time.Now()
				for range calls {
					if _, err := testkit.Echo.Call(testkit.Background, s, text); err != nil {
						t.Error(err)
					}
				}
				took[i] = time.Since(begin)
			})
		}
		wg.Wait()
		require.Equal(t, slices.Repeat([]time.Duration{calls * trip}, callers), took)
	})
}

// TestTrips_BesideIdleStreams opens streams beside many idle ones of both sides that have carried
// data: they are as fast as the first ones.
func TestTrips_BesideIdleStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := testkit.Long(200, 1000)
		here, there := asterisque.NewNode(asterisque.WithService(mirrorService())), asterisque.NewNode(asterisque.WithService(mirrorService()))
		t.Cleanup(func() { here.Close(); there.Close() })
		way := wiretest.Lane{Delay: trip / 2}
		a, b := wiretest.NewLink(wiretest.LinkConfig{Out: way, In: way}).Pipe()
		dialled, accepted := asterisquetest.ConnectOver(t, here, there, wire.FromConn(a), wire.FromConn(b))
		var all sync.WaitGroup
		for range streams {
			for _, s := range []*asterisque.Session{dialled, accepted} {
				all.Go(func() {
					p, err := s.Open(testkit.Background, mirror, nil)
					if err == nil {
						err = carry(p, 20, 15_000)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		fakeclock.Sleep(15 * time.Second)
		slow := 0
		for range 20 {
			for _, s := range []*asterisque.Session{dialled, accepted} {
				begin := time.Now()
				p, err := s.Open(testkit.Background, mirror, nil)
				require.NoError(t, err)
				require.NoError(t, carry(p, 1, 16<<10))
				if took := time.Since(begin); took != trip {
					require.LessOrEqual(t, took, 2*trip)
					slow++
				}
			}
		}
		require.LessOrEqual(t, slow, 4, "a few may meet the moment in which the path is measured anew")
		require.Equal(t, streams+20, dialled.Stats().Running)
	})
}
