package flowtest

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// newService returns a Service with echo.
func newService() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(echo, "echo", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return params, nil })
	return svc
}

// uploads sends n concurrent streams to a function that returns their checksums.
func uploads(workers, n, size int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		content := random(size)
		there, ran := uploadService(n)
		s := p.begin(setup{both: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: workers})}, here: newService(), there: there})
		s.finish(s.start("uploads", n, n, func(i int) error { return send(s.ctx, s.dialled, i, content) }))
		ran.once(s, "uploads")
		s.over()
	}
}

func random(size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// uploadsFromBoth sends n streams from each side.
func uploadsFromBoth(workers, n, size int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		content := random(size)
		here, ranHere := uploadService(n)
		there, ranThere := uploadService(n)
		s := p.begin(setup{both: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: workers})}, here: here, there: there})
		s.finish(s.both("uploads", n, n, func(on *asterisque.Session, i int) error { return send(s.ctx, on, i, content) })...)
		ranThere.once(s, "uploads from the dialling side")
		ranHere.once(s, "uploads from the accepting side")
		s.over()
	}
}

func uploadService(n int) (*asterisque.Service, runs) {
	svc, ran := newService(), make(runs, n)
	svc.Handle(upload, "upload", func(_ context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		ran.note(params)
		sum := crc32.NewIEEE()
		n, err := io.Copy(sum, stream.NewReader(p))
		return checksum(n, sum.Sum32()), err
	})
	return svc, ran
}

func checksum(n int64, sum uint32) []byte { return fmt.Appendf(nil, "%d bytes, %08x", n, sum) }

// send uploads content as number i.
func send(ctx context.Context, on *asterisque.Session, i int, content []byte) error {
	p, err := on.Open(ctx, upload, numbered(i, 4))
	if err != nil {
		return err
	}
	w := stream.NewWriter(p)
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	got, err := p.Result(ctx)
	if want := checksum(int64(len(content)), crc32.ChecksumIEEE(content)); err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s arrived, and not %s", got, want)
	}
	return err
}

// sleepers is many pipes with sleeping readers, concurrently with the rest.
type sleepers struct {
	*scenarioStage
	svc     *asterisque.Service
	running atomic.Int64
	told    [2]atomic.Int64 // handlers of each half that have seen the end of their call
	sent    atomic.Int64    // Blocks
	taken   runs            // Blocks of each pipe
	senders [2]*jobGroup    // of each half
	cancel  [2]context.CancelFunc
}

func newDormitory(pipes int) *sleepers {
	d := &sleepers{svc: newService(), taken: make(runs, pipes)}
	d.svc.Handle(sleep, "sleep", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		d.running.Add(1)
		<-ctx.Done()
		d.told[number(params)%2].Add(1)
		return nil, ctx.Err()
	})
	d.svc.Handle(read, "read slowly", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		d.running.Add(1)
		defer d.told[number(params)%2].Add(1)
		for {
			if _, err := p.Recv(ctx); err != nil {
				return nil, err
			}
			d.taken.note(params)
			if err := pause(ctx, time.Second); err != nil {
				return nil, err
			}
		}
	})
	return d
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fill opens the pipes in two halves, and sends Blocks on each until its half is cancelled.
func (d *sleepers) fill(function uint16, block int) {
	for half := range d.cancel {
		ctx, cancel := context.WithCancel(d.ctx)
		d.cancel[half] = cancel
		d.onEnd(cancel)
		n := d.half()
		d.senders[half] = d.start(fmt.Sprint("senders of half ", half), n, n, func(i int) error {
			err := d.sendWithoutEnd(ctx, function, 2*i+half, make([]byte, block))
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
	}
	d.until("handlers run", len(d.taken), func() int { return int(d.running.Load()) })
}

func (d *sleepers) half() int { return len(d.taken) / 2 }

func (d *sleepers) sendWithoutEnd(ctx context.Context, function uint16, i int, block []byte) error {
	p, err := d.dialled.Open(ctx, function, numbered(i, 4))
	for err == nil {
		if err = p.Send(ctx, block); err == nil {
			d.sent.Add(1)
		}
	}
	return err
}

// wake cancels a half, and waits until its senders and its handlers have ended.
func (d *sleepers) wake(half int) {
	d.Helper()
	d.cancel[half]()
	d.finish(d.senders[half])
	d.until("handlers that have seen the cancellation", d.half(), func() int { return int(d.told[half].Load()) })
}

// sleeping has handlers that receive nothing, and callers that send without end.
func sleeping(pipes, block int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		d := newDormitory(pipes)
		d.fallAsleep(p, block)
		d.echoes(100)
		d.sleepOn(0)
		d.sleepOn(1)
		d.wake(0)
		d.wake(1)
		d.over()
	}
}

// halfCancelled is sleeping with half of the callers cancelled before the echoes.
func halfCancelled(pipes, block int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		d := newDormitory(pipes)
		d.fallAsleep(p, block)
		d.wake(0)
		d.echoes(100)
		d.sleepOn(1)
		d.wake(1)
		d.over()
	}
}

// fallAsleep starts the pipes, and returns when all callers have sent what their windows admit.
func (d *sleepers) fallAsleep(p scenarioPlay, block int) {
	d.scenarioStage = p.begin(setup{here: newService(), there: d.svc})
	d.fill(sleep, block)
	d.settle("Blocks were sent to sleepers", d.sent.Load)
}

// sleepOn checks that all handlers of a half still sleep.
func (d *sleepers) sleepOn(half int) {
	d.Helper()
	if n := d.told[half].Load(); n != 0 {
		d.Fatalf("%d of the %d that were to sleep on were woken%s", n, d.half(), d.report())
	}
}

// slowReaders has handlers that receive one Block a second.
func slowReaders(pipes int) func(scenarioPlay) {
	return func(p scenarioPlay) {
		d := newDormitory(pipes)
		d.scenarioStage = p.begin(setup{both: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: pipes + pipes/20})}, here: newService(), there: d.svc})
		d.fill(read, 16*kib)
		d.until("pipes of which a Block was taken", pipes, d.begun)
		d.echoes(100)
		d.wake(0)
		d.wake(1)
		d.over()
	}
}

// begun returns the number of pipes from which a Block was received.
func (d *sleepers) begun() (n int) {
	for i := range d.taken {
		if d.taken[i].Load() > 0 {
			n++
		}
	}
	return n
}
