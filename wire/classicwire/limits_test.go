package classicwire_test

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// limited returns a session with small limits on both sides, and a channel that is closed once the
// accepting side has reached its inbound soft limit.
func limited(t *testing.T, form classic.Codec, svc *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session, soft chan struct{}) {
	soft = make(chan struct{})
	once := sync.OnceFunc(func() { close(soft) })
	small := limits.Limits{Soft: limits.Amount{Bytes: 200_000}, Hard: limits.Amount{Bytes: 1 << 20}}
	opts = append(opts, asterisque.WithLimits(asterisque.Limits{Inbound: small, Outbound: small}),
		asterisque.WithHooks(asterisque.Hooks{LimitChanged: func(_ *asterisque.Session, d asterisque.Direction, s limits.State) {
			if d == asterisque.Inbound && s == limits.Soft {
				once()
			}
		}}))
	dialled, accepted = connect(t, form, svc, offer(), opts...)
	return dialled, accepted, soft
}

// The soft limit blocks a peer without windows.
func TestSoftLimit_HoldsUp(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		var soft chan struct{}
		svc := offer()
		svc.Handle(21, "slow", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			<-soft // take nothing before the limit is reached
			var n int32
			for {
				if _, err := p.Recv(ctx); err != nil {
					return form.Append(nil, n)
				}
				n++
			}
		})
		dialled, accepted, reached := limited(t, form, svc)
		soft = reached
		p, err := dialled.Open(background, 21, nil)
		require.NoError(t, err)
		const count = 2000
		for range count {
			require.NoError(t, p.Send(background, make([]byte, 4096)))
		}
		require.NoError(t, p.CloseSend())
		result, err := p.Result(background)
		require.NoError(t, err)
		var n int32
		require.NoError(t, form.Decode(result, &n))
		require.EqualValues(t, count, n, "nothing is lost")
		require.NoError(t, accepted.Err())
	})
}

// A reader that never reads is detected as stalled at the soft limit.
func TestSoftLimit_Stalled(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		svc.Handle(21, "stuck", untilOver)
		dialled, accepted, soft := limited(t, form, svc, asterisque.WithTimeouts(asterisque.Timeouts{Stall: 200 * time.Millisecond}))
		p, err := dialled.Open(background, 21, nil)
		require.NoError(t, err)
		for err == nil { // it ends when the session has stalled
			err = p.Send(background, make([]byte, 4096))
		}
		<-soft
		<-accepted.Done()
		require.ErrorIs(t, accepted.Err(), asterisque.ErrStalled)
		<-dialled.Done()
		require.ErrorIs(t, dialled.Err(), asterisque.ErrSessionClosed)
	})
}

func TestHardLimit_EndsSession(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		svc.Handle(21, "stuck", untilOver)
		dialled, accepted := connect(t, form, svc, offer(), asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Hard: limits.Amount{Bytes: 100_000}}}))
		p, err := dialled.Open(background, 21, nil)
		require.NoError(t, err)
		for err == nil {
			err = p.Send(background, make([]byte, 4096))
		}
		<-accepted.Done()
		require.ErrorIs(t, accepted.Err(), asterisque.ErrHardLimit)
		<-dialled.Done()
		require.ErrorIs(t, dialled.Err(), asterisque.ErrSessionClosed)
	})
}

// TestClose_ResultTooLarge uses a pipe id of three bytes. With it, a result within the limit of the
// session is too long for a classic message.
func TestClose_ResultTooLarge(t *testing.T) {
	svc := offer()
	asterisque.Func[int32, string](70, "sized").Handle(svc, func(_ context.Context, n int32) (string, error) {
		return strings.Repeat("x", int(n)), nil
	})
	const id, longer = 0x7000, 2 // the id takes two bytes more
	p, _ := serve(t, classic.MessagePack, newNode(t, classic.MessagePack, svc))
	p.send(msg(open(id, 70, int32(largestResult-longer))))
	p.want(msg(result(id, strings.Repeat("x", largestResult-longer))))
	p.send(msg(open(id, 70, int32(largestResult))))
	b, err := hex.DecodeString(p.next())
	require.NoError(t, err)
	m, _, err := classic.Simple.Parse(b, classic.MaxMessage)
	require.NoError(t, err)
	c := m.(*classic.Close)
	require.EqualValues(t, classic.Unexpected, c.Abort.Code)
	require.Contains(t, c.Abort.Message, "too large: the result is a classic message of 65509 bytes, and 65507 is the limit")
	p.send(msg(open(id, 70, int32(1))))
	p.want(msg(result(id, "x")))
}

func TestCall_DeepLists(t *testing.T) {
	deep := asterisque.Func[any, any](71, "deep")
	nested := func(depth int) (v any) {
		v = int32(1)
		for range depth {
			v = []any{v}
		}
		return v
	}
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		deep.Handle(svc, func(_ context.Context, v any) (any, error) { return v.(classic.Params)[0], nil })
		s, _ := connect(t, form, svc, offer())
		for _, depth := range []int{50, 53, 500, 1000} {
			got, err := deep.Call(background, s, nested(depth))
			require.NoError(t, err, "%d lists", depth)
			require.Equal(t, nested(depth), got)
		}
		_, err := deep.Call(background, s, nested(classic.MaxDepth+1))
		require.ErrorContains(t, err, "values nested deeper than 1024")
	})
}
