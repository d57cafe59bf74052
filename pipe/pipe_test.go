package pipe_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestMain(m *testing.M) { leak.Main(m) }

var background = context.Background()

// silent is a session that ignores every call.
type silent struct{}

func (silent) Send(context.Context, piping.Outgoing) error { return nil }
func (silent) Post(piping.Outgoing) (limits.State, error)  { return limits.Congested, nil }
func (silent) Thin(*piping.Outgoing) bool                  { return false }
func (silent) CloseSend() error                            { return nil }
func (silent) Close([]byte, *codec.Abort)                  {}
func (silent) Announce()                                   {}
func (silent) Outlive(func()) func() bool                  { return nil }
func (silent) Expire(*piping.Outgoing)                     {}
func (silent) Abandon(int)                                 {}
func (silent) Watch()                                      {}
func (silent) Skip(uint64)                                 {}
func (silent) Stop(bool)                                   {}
func (silent) Owns(context.Context) bool                   { return false }
func (silent) MaxBlock() int                               { return 1 << 20 }
func (silent) Misbehaved(any) *codec.Abort                 { return codec.ErrPanicked }
func (silent) Taken(int, int)                              {}
func (silent) Reserve(int) bool                            { return false }

// recorder is a session that records the messages it is to send.
type recorder struct {
	silent
	sent []piping.Outgoing
}

func (r *recorder) Send(_ context.Context, b piping.Outgoing) error {
	r.sent = append(r.sent, b)
	return nil
}

func (r *recorder) Post(b piping.Outgoing) (limits.State, error) {
	r.sent = append(r.sent, b)
	return limits.Congested, nil
}

// newPipe returns a pipe without windows, in the view of applications and in that of its session.
func newPipe() (*pipe.Pipe, *piping.End, *recorder) {
	p, port := new(pipe.Pipe), new(recorder)
	end := (*piping.End)(p)
	end.Init(piping.Config{
		Function: 7, Priority: 3, Port: port, Terms: &piping.Terms{Ledger: port},
		Loss: 5, SendLimit: piping.Unlimited, Granted: piping.Unlimited,
	})
	return p, end, port
}

func TestRecv_FromPeer(t *testing.T) {
	p, end, _ := newPipe()
	require.EqualValues(t, 7, p.Function())
	require.EqualValues(t, 3, p.Priority())
	require.Equal(t, 1<<20, p.MaxBlock())

	end.BlockArrived(piping.NewBlock([]byte("small"), nil, 2, time.Time{}))
	end.BlockArrived(piping.NewBlock(make([]byte, 10_000), nil, 0, time.Time{}))
	b, err := p.Recv(background)
	require.NoError(t, err)
	require.Equal(t, "small", string(b.Payload))
	require.EqualValues(t, 2, b.Skipped)
	b.Release()
	b, err = p.Recv(background)
	require.NoError(t, err)
	require.Len(t, b.Payload, 10_000)
	b.Release()

	end.EndArrived(4)
	_, err = p.Recv(background)
	require.Equal(t, io.EOF, err)
	require.EqualValues(t, 4, p.Skipped())

	end.CloseArrived([]byte("result"), nil)
	<-p.Done()
	require.NoError(t, p.Err())
	result, err := p.Result(background)
	require.NoError(t, err)
	require.Equal(t, "result", string(result))
	require.ErrorIs(t, p.Send(background, nil), pipe.ErrClosed)
}

func TestPause_BlocksRecv(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, _ := newPipe()
		p.StopReading()
		end.BlockArrived(piping.NewBlock([]byte("waits"), nil, 0, time.Time{}))
		got := make(chan string)
		go func() {
			b, _ := p.Recv(background)
			got <- string(b.Payload)
		}()
		synctest.Wait()
		require.Empty(t, got)
		p.StartReading()
		require.Equal(t, "waits", <-got)
	})
}

func TestPipe_EndedByEitherSide(t *testing.T) {
	p, _, _ := newPipe()
	fits, err := p.AwaitCredit(background)
	require.NoError(t, err)
	require.Positive(t, fits)
	p.Stop()
	_, err = p.Recv(background)
	require.ErrorIs(t, err, codec.ErrStopped)
	require.NoError(t, p.CloseSend())
	require.ErrorIs(t, p.CloseSend(), pipe.ErrEnded)
	p.Abort(nil)
	require.ErrorIs(t, p.Err(), codec.ErrCanceled)
}

func TestSendOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, c := range []struct {
			name string
			opts []pipe.SendOption
			want piping.Outgoing
		}{
			{"none", nil, piping.Outgoing{Loss: 5}},
			{"TTL", []pipe.SendOption{pipe.WithTTL(time.Second)}, piping.Outgoing{Loss: 5, Expires: now.Add(time.Second)}},
			{"no TTL", []pipe.SendOption{pipe.WithTTL(time.Second), pipe.WithTTL(0)}, piping.Outgoing{Loss: 5}},
			{"loss", []pipe.SendOption{pipe.WithLoss(100)}, piping.Outgoing{Loss: 100}},
			{"no loss", []pipe.SendOption{pipe.WithLoss(0)}, piping.Outgoing{}},
			{"most loss", []pipe.SendOption{pipe.WithLoss(255)}, piping.Outgoing{Loss: 127}},
			{"marker", []pipe.SendOption{pipe.WithMarker("mine")}, piping.Outgoing{Loss: 5, Marker: "mine"}},
		} {
			p, _, port := newPipe()
			c.want.Payload = []byte("payload")
			require.NoError(t, p.Send(background, c.want.Payload, c.opts...), c.name)
			s, err := p.Post(c.want.Payload, c.opts...)
			require.NoError(t, err, c.name)
			require.Equal(t, limits.Congested, s, c.name)
			require.Equal(t, []piping.Outgoing{c.want, c.want}, port.sent, c.name)
		}
	})
}
