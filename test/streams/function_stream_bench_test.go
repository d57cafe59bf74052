package streams

import (
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/stream"
)

const bulkWrite = 64 << 10

// BenchmarkBulk sends bytes in one direction, in writes of 64 KiB, over one or many streams of a
// session.
func BenchmarkBulk(b *testing.B) {
	for _, streams := range []int{1, 100} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			svc := asterisque.NewService()
			svc.Handle(1, "sink", testkit.Discard)
			sess, _ := testkit.Connect(b, svc)
			var writers []io.Writer
			var wait []func()
			for range streams {
				p, err := sess.Open(testkit.Background, 1, nil)
				require.NoError(b, err)
				w := stream.NewWriter(p)
				writers = append(writers, w)
				wait = append(wait, func() { w.Close(); p.Result(testkit.Background) })
			}
			bulk(b, writers, func() {
				for _, f := range wait {
					f()
				}
			})
		})
	}
}

// BenchmarkCopy is the lower bound: the same writes into a bare TCP connection.
func BenchmarkCopy(b *testing.B) {
	here, there := testkit.TCPPair(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, bulkWrite)
		for {
			if _, err := there.Read(buf); err != nil {
				return
			}
		}
	}()
	bulk(b, []io.Writer{here}, func() { here.Close(); <-done })
}

// bulk performs b.N writes in all, divided among the writers, and waits until finish reports that
// all bytes have arrived.
func bulk(b *testing.B, writers []io.Writer, finish func()) {
	b.SetBytes(bulkWrite)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, w := range writers {
		n := b.N / len(writers)
		if i < b.N%len(writers) {
			n++
		}
		wg.Go(func() {
			payload := make([]byte, bulkWrite)
			for range n {
				if _, err := w.Write(payload); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	finish()
}
