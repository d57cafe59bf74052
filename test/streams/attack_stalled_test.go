package streams

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// Many streams share a slow path that is never idle, and each sends one Block. None is stalled.
func TestDivided_SharedSlowPath(t *testing.T) {
	for name, c := range map[string]struct {
		rate, streams, size int
		low                 bool // one of the streams has a low priority
	}{
		"64 kbit/s":                {rate: 8000, streams: 10, size: 300_000},
		"512 kbit/s":               {rate: 64_000, streams: 60, size: 300_000},
		"2 Mbit/s, a low priority": {rate: 250_000, streams: 100, size: 300_000, low: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(sinks(func(int) {})))
				defer func() { here.Close(); there.Close() }()
				way := wiretest.Lane{Delay: 50 * time.Millisecond, Rate: c.rate}
				a, b := wiretest.NewLink(wiretest.LinkConfig{Out: way, In: way}).Pipe()
				s, _ := asterisquetest.ConnectOver(t, here, there, wire.FromConn(a), wire.FromConn(b))
				errs := make([]error, c.streams)
				var all sync.WaitGroup
				for i := range c.streams {
					all.Go(func() {
						var opts []asterisque.CallOption
						if c.low && i == 0 {
							opts = append(opts, asterisque.WithPriority(priority.Normal-1))
						}
						p, err := s.Open(testkit.Background, 1, nil, opts...)
						if err == nil {
							err = p.Send(testkit.Background, make([]byte, c.size))
						}
						if err == nil {
							err = p.CloseSend()
						}
						if err == nil {
							_, err = p.Result(testkit.Background)
						}
						errs[i] = err
					})
				}
				all.Wait()
				for _, err := range errs {
					require.NoError(t, err)
				}
			})
		})
	}
}
