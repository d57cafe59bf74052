package parts

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// partedMessage is a Block or a Close of four parts.
type partedMessage struct {
	called bool // by the peer
	made   func(r *partedRig) func(ctx context.Context, s *asterisque.Session) error
}

// partedService answers the calls of the peer.
func partedService() (svc *asterisque.Service, done chan error) {
	svc, done = asterisque.NewService(), make(chan error, 1)
	svc.Handle(1, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
		done <- nil
		return make([]byte, testkit.PartedLen), nil
	})
	svc.Handle(2, "sends", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		err := p.Send(ctx, make([]byte, testkit.PartedLen))
		done <- nil
		if err == nil {
			<-ctx.Done()
		}
		return nil, ctx.Err()
	})
	svc.Handle(3, "fails", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
		done <- nil
		return nil, &asterisque.Abort{Code: 1000, Message: "large", Detail: make([]byte, testkit.PartedLen)}
	})
	return svc, done
}

// answered makes the peer call, with an answer, or Block, in parts.
func answered(function uint16) partedMessage {
	return partedMessage{called: true, made: func(r *partedRig) func(context.Context, *asterisque.Session) error {
		return func(context.Context, *asterisque.Session) error {
			r.say(&message.Open{Pipe: r.own(0), Function: function, Meta: message.Meta{Stream: true, Window: 1 << 20}})
			return <-r.done
		}
	}}
}

// sent opens a stream before anything else, and makes f send on it.
func sent(f func(ctx context.Context, p *pipe.Pipe) error) partedMessage {
	return partedMessage{made: func(r *partedRig) func(context.Context, *asterisque.Session) error {
		life, end := context.WithCancel(testkit.Background)
		opened := make(chan *pipe.Pipe, 1)
		go func() {
			p, err := r.s.Open(life, 7, nil)
			require.NoError(r.t, err)
			opened <- p
		}()
		r.pipe = r.p.Open().Pipe
		p := <-opened
		r.say(message.Credit{Pipe: r.pipe, Limit: 1 << 20})
		return func(ctx context.Context, _ *asterisque.Session) error {
			defer end()
			context.AfterFunc(ctx, func() { p.Abort(ctx.Err()) })
			if err := f(ctx, p); err != nil {
				return err
			}
			_, err := p.Result(testkit.Background)
			return err
		}
	}}
}

var partedMessages = map[string]partedMessage{
	"result":             answered(1),
	"abort":              answered(3),
	"Block of a handler": answered(2),
	"Block": sent(func(ctx context.Context, p *pipe.Pipe) error {
		return p.Send(ctx, make([]byte, testkit.PartedLen))
	}),
	"Block that may be lost": sent(func(ctx context.Context, p *pipe.Pipe) error {
		_, err := p.Post(make([]byte, testkit.PartedLen), pipe.WithLoss(127))
		return err
	}),
	"Blocks and the end": sent(func(ctx context.Context, p *pipe.Pipe) error {
		p.Post(make([]byte, testkit.PartedLen))
		p.Post(make([]byte, 60_000))
		return p.CloseSend()
	}),
}

// TestParts_BlockOrCloseEnds ends the call of each Block and each Close at each point, as
// TestParts_OpenEnds does for Opens.
func TestParts_BlockOrCloseEnds(t *testing.T) {
	ends := maps.Clone(partedEnds)
	ends["answered"] = partedEnd{do: func(r *partedRig, _ context.CancelFunc) { r.say(&message.Close{Pipe: r.pipe, Result: []byte{1}}) }}
	ends["stopped and failed"] = partedEnd{do: func(r *partedRig, cancel context.CancelFunc) {
		r.say(message.Stop{Pipe: r.pipe})
		closedWith(codec.Failed, codec.MaybeRan)(r, cancel)
	}}
	n := 0
	for _, dials := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(partedMessages)) {
			for _, end := range slices.Sorted(maps.Keys(ends)) {
				for read := -1; read <= testkit.FourParts; read++ {
					m, e := partedMessages[name], ends[end]
					if n++; m.called && e.local || !testkit.Sampled(n) {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						svc, done := partedService()
						r := newPartedRig(t, dials, asterisque.WithService(svc))
						r.done = done
						defer func() {
							if t.Failed() {
								t.Logf("dials %v/%s/%s/%d", dials, name, end, read)
							}
						}()
						r.pipe = r.own(0)
						_, err := r.end(m.made(r), e, read)
						if !m.called && end != "answered" {
							require.Error(t, err)
						}
					})
				}
			}
		}
	}
}
