package streams

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// numbered returns a Block of n bytes that says its number.
func numbered(number uint32, n int) []byte {
	b := make([]byte, n)
	for at := 0; at+4 <= n; at += 4 {
		binary.BigEndian.PutUint32(b[at:], number+uint32(at))
	}
	return b
}

// numberOf returns the number of a Block, or an error if its bytes are not those of numbered.
func numberOf(b []byte) (number uint32, err error) {
	number = binary.BigEndian.Uint32(b)
	for at := 0; at+4 <= len(b); at += 4 {
		if got := binary.BigEndian.Uint32(b[at:]) - uint32(at); got != number {
			return 0, fmt.Errorf("at %d of %d bytes: %d, not %d", at, len(b), got, number)
		}
	}
	return number, nil
}

// counting is a service with a function 60 that counts the numbered Blocks that come. Several
// goroutines receive them, some of which leave.
type counting struct {
	mu      sync.Mutex
	arrived map[uint32]int // guarded by mu
}

func (c *counting) service() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(60, "counts", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		errs := make(chan error, 3)
		for i := range uint64(3) {
			go func() { errs <- c.receive(ctx, p, rand.New(rand.NewPCG(i, 2))) }()
		}
		for range 3 {
			if err := <-errs; err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return svc
}

// receive receives all Blocks, and leaves from time to time.
func (c *counting) receive(ctx context.Context, p *pipe.Pipe, lots *rand.Rand) error {
	for {
		short, leave := context.WithCancel(ctx)
		if lots.IntN(4) == 0 {
			time.AfterFunc(time.Duration(lots.IntN(300))*time.Microsecond, leave)
		}
		b, err := p.Recv(short)
		left := short.Err() != nil && ctx.Err() == nil
		leave()
		switch {
		case err == io.EOF:
			return nil
		case err != nil && left:
			continue
		case err != nil:
			return err
		}
		number, err := numberOf(b.Payload)
		b.Release()
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.arrived[number]++
		c.mu.Unlock()
	}
}

// TestDivided_ManyOnOnePipe sends Blocks of all sizes from several goroutines, some of which give
// up. Each accepted Block arrives once, and no other, also if wires are lost meanwhile.
func TestDivided_ManyOnOnePipe(t *testing.T) {
	for name, cuts := range map[string]uint32{"over one wire": 0, "over many wires": 4} {
		t.Run(name, func(t *testing.T) {
			c := &counting{arrived: make(map[uint32]int)}
			conn, wires := testkit.Lasting(t, c.service(), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
			p, err := conn.Open(testkit.Background, 60, nil)
			require.NoError(t, err)
			const senders = 4
			blocks := uint32(testkit.Long(40, 400))
			var mu sync.Mutex
			sent := make(map[uint32]int) // guarded by mu
			var sending sync.WaitGroup
			for i := range uint32(senders) {
				sending.Go(func() {
					lots := rand.New(rand.NewPCG(uint64(i), 1))
					for j := range blocks {
						if i == 1 && cuts > 0 && j%(blocks/cuts) == 3 {
							wires.Cut()
						}
						number := i<<28 + j<<16
						if sendNumbered(p, number, i == 0, lots) == nil {
							mu.Lock()
							sent[number]++
							mu.Unlock()
						}
					}
				})
			}
			sending.Wait()
			require.NoError(t, p.CloseSend())
			_, err = p.Result(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, sent, c.arrived)
			require.Greater(t, len(sent), 40)
		})
	}
}

// sendNumbered sends a numbered Block of any size, or gives it up. If posts is true, it posts it.
func sendNumbered(p *pipe.Pipe, number uint32, posts bool, lots *rand.Rand) error {
	sizes := []int{4, 600, 3000, 17_000, 66_000, 200_000, 1 << 20}
	ctx, giveUp := context.WithCancel(testkit.Background)
	defer giveUp()
	if lots.IntN(3) == 0 {
		time.AfterFunc(time.Duration(lots.IntN(1000))*time.Microsecond, giveUp)
	}
	b := numbered(number, sizes[lots.IntN(len(sizes))])
	if !posts {
		return p.Send(ctx, b)
	}
	if _, err := p.AwaitCredit(ctx); err != nil {
		return err
	}
	_, err := p.Post(b)
	return err
}
