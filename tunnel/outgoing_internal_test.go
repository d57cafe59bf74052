package tunnel

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// port is a session that records the Blocks of a pipe.
type port struct {
	blocks [][]byte
	ended  int           // how many Blocks there were at the end
	stall  chan struct{} // Send waits until it is closed; may be nil
	err    error         // of Send
}

func (p *port) Send(ctx context.Context, b piping.Outgoing) error {
	if p.stall != nil {
		select {
		case <-p.stall:
		case <-ctx.Done():
			return codec.AbortOf(ctx.Err())
		}
	}
	if p.err != nil {
		return p.err
	}
	p.blocks = append(p.blocks, bytes.Clone(b.Payload))
	return nil
}
func (p *port) CloseSend() error                           { p.ended = len(p.blocks); return nil }
func (p *port) Post(piping.Outgoing) (limits.State, error) { return limits.Ready, nil }
func (p *port) Thin(*piping.Outgoing) bool                 { return false }
func (p *port) MaxBlock() int                              { return 1 << 20 }
func (p *port) Stop(bool)                                  {}
func (p *port) Announce()                                  {}
func (p *port) Close([]byte, *codec.Abort)                 {}
func (p *port) Outlive(func()) func() bool                 { return nil }
func (p *port) Expire(*piping.Outgoing)                    {}
func (p *port) Abandon(int)                                {}
func (p *port) Watch()                                     {}
func (p *port) Skip(uint64)                                {}
func (p *port) Owns(context.Context) bool                  { return false }
func (p *port) Misbehaved(any) *codec.Abort                { return codec.ErrPanicked }

// sizes returns the sizes of the Blocks.
func (p *port) sizes() (all []int) {
	for _, b := range p.blocks {
		all = append(all, len(b))
	}
	return all
}

// sent returns the bytes of all Blocks.
func (p *port) sent() []byte { return bytes.Join(p.blocks, nil) }

// narrow returns a connection and the pipe below it. The peer grants credit up to limit.
func narrow(early, limit uint64) (*Conn, *port, *piping.End) {
	p, to := new(pipe.Pipe), new(port)
	end := (*piping.End)(p)
	end.Init(piping.Config{Port: to, SendLimit: limit, Granted: piping.Unlimited,
		Terms: &piping.Terms{PeerOverhead: 512, PeerEarly: early}})
	return NewConn(p, nil), to, end
}

// busy marks that a goroutine is about to send the kept bytes, so that no other is started.
func busy(c *Conn) *Conn {
	c.out.soon.Store(true)
	return c
}

// pattern returns n bytes, each different from the next.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// Large Writes in a row are sent in full Blocks.
func TestOutgoing_FullBlocks(t *testing.T) {
	for _, size := range []int{32 << 10, 64 << 10, 100_000, 1 << 20} {
		c, to, _ := narrow(4096, piping.Unlimited)
		busy(c)
		content := pattern(63 * size)
		for rest := content; len(rest) > 0; rest = rest[size:] {
			n, err := c.Write(rest[:size])
			require.NoError(t, err)
			require.Equal(t, size, n)
		}
		require.Less(t, len(content)-len(to.sent()), stream.DefaultSize)
		for _, n := range to.sizes() {
			require.Equal(t, stream.DefaultSize, n, "writes of %d", size)
		}
		c.out.sendKept()
		require.True(t, bytes.Equal(content, to.sent()))
		require.Nil(t, c.out.mem, "an idle connection keeps no memory")
	}
}

// A small Write is sent with the kept bytes.
func TestOutgoing_SmallTakesKept(t *testing.T) {
	c, to, _ := narrow(4096, piping.Unlimited)
	busy(c).Write(pattern(64 << 10))
	require.Equal(t, []int{63 << 10}, to.sizes())
	n, err := c.Write([]byte("small"))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Equal(t, []int{63 << 10, 1<<10 + 5}, to.sizes())
	require.Nil(t, c.out.mem)
}

// Small Writes keep nothing.
func TestOutgoing_SmallKeepNothing(t *testing.T) {
	c, to, _ := narrow(4096, piping.Unlimited)
	for _, n := range []int{1, 1000, large - 1} {
		_, err := busy(c).Write(make([]byte, n))
		require.NoError(t, err)
		require.Zero(t, c.out.kept)
		require.Equal(t, n, to.sizes()[len(to.blocks)-1])
	}
	_, err := c.Write(make([]byte, large))
	require.NoError(t, err)
	require.Equal(t, large, c.out.kept)
}

// Nothing is kept that the window has no room for.
func TestOutgoing_NoWindow(t *testing.T) {
	const block = stream.DefaultSize + 512
	synctest.Test(t, func(t *testing.T) {
		c, to, end := narrow(2048, block+2047) // less than 2,048 is not worth a Block
		require.NoError(t, busy(c).SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := c.Write(pattern(64 << 10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 63<<10, n)
		require.Zero(t, c.out.kept)

		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		end.CreditArrived(block + 2048) // 1,536 bytes
		n, err = c.Write(pattern(large))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 1536, n)
		require.Equal(t, []int{63 << 10, 1536}, to.sizes())
	})
}

// Only as much is sent with kept bytes as fits.
func TestOutgoing_OnlyWhatFits(t *testing.T) {
	const block = stream.DefaultSize + 512
	synctest.Test(t, func(t *testing.T) {
		c, to, end := narrow(2048, block+512+1700)
		content := pattern(200_000)
		n, err := busy(c).Write(content[:64<<10])
		require.NoError(t, err)
		require.Equal(t, 64<<10, n)
		require.Equal(t, 1<<10, c.out.kept)
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err = c.Write(content[64<<10:])
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 1700-1<<10, n)
		require.Equal(t, []int{63 << 10, 1700}, to.sizes())

		require.NoError(t, c.SetWriteDeadline(time.Time{}))
		end.CreditArrived(piping.Unlimited)
		_, err = c.Write(content[64<<10+n:])
		require.NoError(t, err)
		c.out.sendKept()
		require.True(t, bytes.Equal(content, to.sent()))
	})
}

// A peer without early credit grants room for each Block.
func TestOutgoing_WithoutEarlyCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to, end := narrow(0, 0)
		written := make(chan error)
		go func() {
			_, err := c.Write(pattern(64 << 10))
			written <- err
		}()
		total := uint64(0)
		for i, n := range []uint64{63 << 10, 1 << 10} {
			synctest.Wait()
			require.Len(t, to.blocks, i)
			total += n + 512
			end.CreditArrived(total)
		}
		require.NoError(t, <-written)
		require.Equal(t, []int{63 << 10, 1 << 10}, to.sizes())
	})
}

// A deadline counts while kept bytes are sent.
func TestOutgoing_Deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to, _ := narrow(4096, piping.Unlimited)
		content := pattern(64<<10 + 5)
		busy(c).Write(content[:64<<10])
		to.stall = make(chan struct{})
		go c.out.sendKept()
		synctest.Wait()
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := c.Write(content[64<<10:])
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Zero(t, n)
		require.NoError(t, c.SetWriteDeadline(time.Time{}))
		close(to.stall)
		_, err = c.Write(content[64<<10:])
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, to.sent()))
	})
}

// Kept bytes stay kept through a deadline.
func TestOutgoing_KeptAfterDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to, _ := narrow(4096, piping.Unlimited)
		content := pattern(64<<10 + 5)
		busy(c).Write(content[:64<<10])
		to.stall = make(chan struct{})
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := c.Write(content[64<<10:])
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Zero(t, n)
		close(to.stall)
		require.NoError(t, c.SetWriteDeadline(time.Time{}))
		_, err = c.Write(content[64<<10:])
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, to.sent()))
	})
}

// The error of kept bytes is that of the next Write.
func TestOutgoing_ErrorOfKept(t *testing.T) {
	boom := errors.New("boom")
	c, to, _ := narrow(4096, piping.Unlimited)
	busy(c).Write(pattern(64 << 10))
	to.err = boom
	c.out.sendKept()
	to.err = nil
	for range 2 {
		n, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, boom)
		require.Zero(t, n)
	}
	require.NoError(t, c.Close())
}

// Close sends kept bytes without blocking.
func TestOutgoing_CloseSendsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(*Conn) error{"Close": (*Conn).Close, "CloseWrite": (*Conn).CloseWrite} {
			for _, sending := range []bool{false, true} {
				c, to, _ := narrow(4096, piping.Unlimited)
				content := pattern(64 << 10)
				busy(c).Write(content)
				to.stall = make(chan struct{})
				if sending {
					go c.out.sendKept()
					synctest.Wait()
				}
				require.NoError(t, end(c), name)
				synctest.Wait()
				require.Zero(t, to.ended, name)
				_, err := c.Write([]byte("x"))
				require.True(t, errors.Is(err, net.ErrClosed) || errors.Is(err, pipe.ErrEnded), "%s: %v", name, err)
				close(to.stall)
				<-c.out.over
				require.Equal(t, 2, to.ended, name)
				require.True(t, bytes.Equal(content, to.sent()), name)
			}
		}
	})
}
