package outbox_test

import (
	"fmt"
	"testing"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/priority"
)

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			o := outbox.New(0, 1<<20, 0, 0, func(int, int) {}, nil)
			f := outbox.AcceptedFlow(0, 1)
			payload := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				write, _ := o.Put(&f, &outbox.Message{Type: message.BlockType, Payload: payload})
				if batch, _ := o.Take(); write && batch != nil {
					o.Written(batch)
					o.Take()
				}
			}
		})
	}
}

// BenchmarkQueued puts and takes while 100,000 messages of 1,000 pipes and seven priorities wait.
func BenchmarkQueued(b *testing.B) {
	o := outbox.New(0, 1<<20, 0, 0.05, func(int, int) {}, nil)
	flows := make([]outbox.Flow, 1000)
	payload := make([]byte, 64)
	put := func(i int) { o.Put(&flows[i%1000], &outbox.Message{Type: message.BlockType, Payload: payload}) }
	for i := range flows {
		flows[i] = outbox.AcceptedFlow(priority.Priority(i%7), uint64(2*i+1))
	}
	for i := 0; o.Waiting() < 100_000; i++ {
		put(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		put(i)
		if o.Waiting() > 100_500 { // a batch holds some 500 of them
			batch, _ := o.Take()
			o.Written(batch)
		}
	}
}
