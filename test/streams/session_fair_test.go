package streams

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// shares is a connection that counts the written bytes of Blocks for each pipe.
type shares struct {
	net.Conn // fixed

	mu    sync.Mutex
	rest  []byte         // of a frame that has not come as a whole; guarded by mu, as all below
	bytes map[uint64]int // of each pipe since the count began
	left  int            // bytes that are to be counted still
	done  chan struct{}  // closed when none are
}

func (s *shares) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.rest = append(s.rest, b...)
	frames := s.rest
	for len(frames) >= 4 && len(frames) >= 4+int(binary.BigEndian.Uint32(frames)) {
		end := 4 + binary.BigEndian.Uint32(frames)
		s.addLocked(frames[4:end])
		frames = frames[end:]
	}
	s.rest = append(s.rest[:0], frames...)
	s.mu.Unlock()
	return s.Conn.Write(b)
}

func (s *shares) addLocked(frame []byte) {
	if s.left <= 0 {
		return
	}
	n := 0
	if p, err := message.ParsePart(frame); err == nil {
		n = len(p.Bytes)
		s.bytes[p.Pipe] += n
	} else if m, err := message.ParseBlock(frame); err == nil {
		n = len(m.Payload)
		s.bytes[m.Pipe] += n
	}
	if s.left -= n; s.left <= 0 {
		close(s.done)
	}
}

// count waits for the given number of further bytes, and returns them by pipe.
func (s *shares) count(bytes int) map[uint64]int {
	s.mu.Lock()
	s.bytes, s.left, s.done = map[uint64]int{}, bytes, make(chan struct{})
	s.mu.Unlock()
	<-s.done
	return s.bytes
}

// sharing describes streams that send as fast as they can, in Blocks of one size, over one path.
type sharing struct {
	rate          int // bytes a second
	trip          time.Duration
	streams, size int
}

// turn returns the number of bytes that a stream sends in a round. Large messages are sent one at a
// time, in parts.
func (c sharing) turn() int { return max(c.size, 4<<10) }

// counted returns the number of bytes to count: those of fifty rounds, and at least those of a
// second.
func (c sharing) counted() int { return max(min(50*c.streams*c.turn(), 400<<20), c.rate) }

// run returns Jain's index of the bytes of the streams over some rounds, and the used fraction of
// the path.
func (c sharing) run(t *testing.T) (jain, used float64) {
	lane := wiretest.Lane{Rate: c.rate, Delay: c.trip / 2}
	link := wiretest.NewLink(wiretest.LinkConfig{Out: lane, In: lane})
	svc := asterisque.NewService()
	svc.Handle(sinkFn, "sink", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for {
			if _, err := p.Recv(ctx); err != nil {
				return nil, err
			}
		}
	})
	a, b := link.Pipe()
	out := &shares{Conn: a}
	// The path limits the streams, not the memory of the receiver.
	room := asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(256<<20, 1<<30)})
	here, there := testkit.NewNode(t), testkit.NewNode(t, asterisque.WithService(svc), room)
	s, _ := asterisquetest.ConnectOver(t, here, there, wire.FromConn(out), wire.FromConn(b))
	defer synctest.Wait()
	defer s.Close()
	for range c.streams {
		p, err := s.Open(testkit.Background, sinkFn, nil)
		require.NoError(t, err)
		go func() { // ends with the session
			block := make([]byte, c.size)
			for err := error(nil); err == nil; {
				err = p.Send(testkit.Background, block)
			}
		}()
	}
	fakeclock.Sleep(3*time.Second + 20*c.trip) // by then the path is known
	before, begin := passed(link), time.Now()
	bytes := out.count(c.counted())
	used = float64(passed(link)-before) / time.Since(begin).Seconds() / float64(c.rate)
	var sum, squares float64
	for _, n := range bytes {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / squares / float64(c.streams), used
}

func passed(l *wiretest.Link) int64 {
	out, _ := l.Stats()
	return out.Passed
}

// asks reports whether the receiver lacks room for windows of the size of their Blocks for all
// streams, while the path holds enough for some windows to grow to that size: streams that have to
// ask for each Block get less than those.
func (c sharing) asks() bool {
	return c.streams*c.size > 128<<20 && float64(c.rate)*c.trip.Seconds() > 1<<20
}

// sharings returns some combinations of paths and streams, or all with -soak.
func sharings() (all []sharing) {
	const ms = time.Millisecond
	if !*testkit.Soak {
		return []sharing{
			{100_000, 20 * ms, 20, 8 << 10},
			{1_000_000, ms, 2, 8 << 10},
			{1_000_000, ms, 20, 8 << 10},
			{1_000_000, ms, 20, 64 << 10},
			{1_000_000, 20 * ms, 200, 1 << 10},
			{10_000_000, ms, 20, 8 << 10},
			{10_000_000, 200 * ms, 20, 8 << 10},
			{100_000_000, 20 * ms, 20, 1 << 10},
		}
	}
	for _, rate := range []int{100_000, 1_000_000, 10_000_000, 100_000_000} {
		for _, trip := range []time.Duration{ms, 20 * ms, 200 * ms} {
			for _, streams := range []int{2, 20, 200} {
				for _, size := range []int{1 << 10, 8 << 10, 64 << 10, 1 << 20} {
					if c := (sharing{rate, trip, streams, size}); !c.asks() {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

func TestFair_EqualBytes(t *testing.T) {
	testkit.SkipRace(t)
	for _, c := range sharings() {
		t.Run(fmt.Sprintf("%d streams of %d bytes, %d a second, %v", c.streams, c.size, c.rate, c.trip), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jain, used := c.run(t)
				t.Logf("Jain's index %.4f, %.3f of the path", jain, used)
				require.GreaterOrEqual(t, jain, 0.98)
				require.GreaterOrEqual(t, used, 0.95)
			})
		})
	}
}
