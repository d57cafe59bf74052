package stream_test

import (
	"context"
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

// port is a session that records the sizes of the Blocks.
type port struct {
	blocks  []int
	bytes   int
	divided bool // a Block came in pieces
}

func (p *port) Send(_ context.Context, b piping.Outgoing) error {
	p.blocks = append(p.blocks, len(b.Payload))
	p.bytes += len(b.Payload)
	p.divided = p.divided || b.Whole > 0
	return nil
}
func (p *port) Post(piping.Outgoing) (limits.State, error) { return limits.Ready, nil }
func (p *port) Thin(*piping.Outgoing) bool                 { return false }
func (p *port) CloseSend() error                           { return nil }
func (p *port) MaxBlock() int                              { return 1 << 20 }
func (p *port) Owns(context.Context) bool                  { return false }
func (p *port) Misbehaved(any) *codec.Abort                { return codec.ErrPanicked }
func (p *port) Stop(bool)                                  {}
func (p *port) Announce()                                  {}
func (p *port) Close([]byte, *codec.Abort)                 {}
func (p *port) Outlive(func()) func() bool                 { return nil }
func (p *port) Expire(*piping.Outgoing)                    {}
func (p *port) Abandon(int)                                {}
func (p *port) Watch()                                     {}
func (p *port) Skip(uint64)                                {}

// narrow returns a pipe with a peer that grants credit up to limit, but more than early only on
// request.
func narrow(early, limit uint64) (*pipe.Pipe, *port) {
	p, to := new(pipe.Pipe), new(port)
	(*piping.End)(p).Init(piping.Config{Port: to, SendLimit: limit, Granted: piping.Unlimited,
		Terms: &piping.Terms{PeerOverhead: 512, PeerEarly: early}})
	return p, to
}

func TestWriter_NeverDivides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, to := narrow(2048, 5000)
		w := stream.NewWriter(p)
		w.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := w.Write(make([]byte, 100_000))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, []int{4488}, to.blocks, "the whole window")
		require.Equal(t, 4488, n)

		w.SetWriteDeadline(time.Time{})
		written := make(chan error)
		go func() {
			_, err := w.Write(make([]byte, 3000))
			written <- err
		}()
		synctest.Wait()
		(*piping.End)(p).CreditArrived(5000 + 2047)
		synctest.Wait()
		require.Len(t, to.blocks, 1, "less than comes by itself is not worth a Block")
		(*piping.End)(p).CreditArrived(5000 + 2048)
		require.NoError(t, <-written, "it is kept")
		go func() { written <- w.Flush() }()
		synctest.Wait()
		require.Equal(t, []int{4488, 1536}, to.blocks)
		(*piping.End)(p).CreditArrived(1 << 20)
		require.NoError(t, <-written)
		require.Equal(t, []int{4488, 1536, 1464}, to.blocks)
		require.False(t, to.divided)
	})
}

func TestWriter_WithoutEarlyCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, to := narrow(0, 0)
		end := (*piping.End)(p)
		written := make(chan error)
		go func() {
			_, err := stream.NewWriterSize(p, 1000).Write(make([]byte, 2000))
			written <- err
		}()
		for i := range 2 {
			synctest.Wait()
			require.Len(t, to.blocks, i)
			end.CreditArrived(uint64(i+1) * 1512)
		}
		require.NoError(t, <-written)
		require.Equal(t, []int{1000, 1000}, to.blocks, "and no empty ones")
	})
}
