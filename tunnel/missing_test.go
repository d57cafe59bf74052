package tunnel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/tunnel"
)

// TestRead_MissingBytes uses a foreign peer that sends Blocks with a short time to live.
func TestRead_MissingBytes(t *testing.T) {
	brief := pipe.WithTTL(time.Millisecond)
	for name, last := range map[string]func(p *pipe.Pipe) error{
		"before a Block": func(p *pipe.Pipe) error { return p.Send(background, []byte("last")) },
		"at the end":     func(p *pipe.Pipe) error { return p.CloseSend() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, ended := asterisque.NewService(), make(chan error, 1)
				svc.Handle(number, "lossy", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
					require.NoError(t, p.Send(background, []byte("first")))
					require.NoError(t, p.Send(background, []byte("lost"), brief))
					require.NoError(t, last(p))
					<-ctx.Done()
					ended <- p.Err()
					return nil, nil
				})
				s, _ := inMemory(t, svc)
				c, err := tunnel.Dial(background, s, number)
				require.NoError(t, err)
				fakeclock.Sleep(time.Second)
				wantRead(t, c, "first")
				for range 2 {
					n, err := c.Read(make([]byte, 10))
					require.Zero(t, n)
					wantError(t, tunnel.ErrMissing, err)
				}
				require.ErrorContains(t, <-ended, "bytes are missing", "the peer learns it")
			})
		})
	}
}
