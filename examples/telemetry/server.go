package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// server counts received readings and bytes.
type server struct {
	delivered, skipped atomic.Int64 // readings
	uploaded           atomic.Int64 // bytes
}

// service has the functions of the server.
func (s *server) service() *asterisque.Service {
	svc := asterisque.NewService()
	readings.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[struct{}, []byte]) (tally, error) {
		return s.takeReadings(ctx, p.Untyped())
	})
	upload.Handle(svc, func(_ context.Context, _ struct{}, p *asterisque.Pipe[struct{}, []byte]) ([]byte, error) {
		sum := sha256.New()
		_, err := stream.NewReader(p.Untyped()).WriteTo(io.MultiWriter(sum, (*meter)(&s.uploaded)))
		return sum.Sum(nil), err
	})
	command.Handle(svc, func(_ context.Context, order []byte) ([]byte, error) { return order, nil })
	return svc
}

// takeReadings takes readings until their end. Each Block has the number of missing ones before it.
func (s *server) takeReadings(ctx context.Context, p *pipe.Pipe) (t tally, err error) {
	next := uint64(0) // the lowest valid number
	for {
		b, err := p.Recv(ctx)
		if err == io.EOF {
			t.Skipped += s.skip(p.Skipped()) // those at the end
			return t, nil
		}
		if err != nil {
			return t, err
		}
		number, err := check(b.Payload, next+b.Skipped)
		if err != nil {
			return t, err
		}
		next = number + 1
		t.Skipped += s.skip(b.Skipped)
		b.Release()
		t.Delivered++
		s.delivered.Add(1)
	}
}

func (s *server) skip(n uint64) uint64 {
	s.skipped.Add(int64(n))
	return n
}

// check returns the number of a reading, or an error if it is less than next: Blocks may be
// dropped, but never repeated or reordered.
func check(b []byte, next uint64) (number uint64, err error) {
	if len(b) != readingSize {
		return 0, fmt.Errorf("a reading has %d bytes, want %d", len(b), readingSize)
	}
	if number = binary.BigEndian.Uint64(b); number < next {
		return 0, fmt.Errorf("reading %d has come where %d was due", number, next)
	}
	return number, nil
}

// meter is an io.Writer that counts bytes.
type meter atomic.Int64

func (m *meter) Write(b []byte) (int, error) {
	(*atomic.Int64)(m).Add(int64(len(b)))
	return len(b), nil
}
