package tunnel_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/tunnel"
)

// BenchmarkBulk sends bytes in one direction over TCP loopback, in writes of one size and with
// io.Copy, into a Conn and, for comparison, into a Writer of package stream.
func BenchmarkBulk(b *testing.B) {
	for _, c := range []struct {
		name string
		size int64 // bytes
		send func(w io.Writer, n, size int64) error
	}{
		{"4KiB", 4 << 10, writes},
		{"32KiB", 32 << 10, writes},
		{"64KiB", 64 << 10, writes},
		{"1MiB", 1 << 20, writes},
		{"Copy", 1 << 20, copies},
	} {
		for _, into := range []struct {
			name string
			open func(*pipe.Pipe) io.ReadWriteCloser
		}{
			{"stream", func(p *pipe.Pipe) io.ReadWriteCloser { return streamed{stream.NewReader(p), stream.NewWriter(p)} }},
			{"tunnel", func(p *pipe.Pipe) io.ReadWriteCloser { return tunnel.NewConn(p, nil) }},
		} {
			b.Run(c.name+"/"+into.name, func(b *testing.B) {
				svc := asterisque.NewService()
				svc.Handle(number, "sink", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
					_, err := io.Copy(io.Discard, into.open(p))
					return nil, err
				})
				s, _ := overTCP(b, svc)
				p, err := s.Open(background, number, nil)
				require.NoError(b, err)
				b.SetBytes(c.size)
				b.ReportAllocs()
				b.ResetTimer()
				w := into.open(p)
				require.NoError(b, c.send(w, int64(b.N), c.size))
				require.NoError(b, w.Close())
				_, err = p.Result(background)
				require.NoError(b, err)
			})
		}
	}
}

// streamed is a Reader and a Writer of package stream.
type streamed struct {
	*stream.Reader
	*stream.Writer
}

// Close ends the stream.
func (s streamed) Close() error { return s.Writer.Close() }

// writes performs n writes of size bytes.
func writes(w io.Writer, n, size int64) error {
	b := make([]byte, size)
	for range n {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// copies copies n times size bytes with one io.Copy.
func copies(w io.Writer, n, size int64) error {
	_, err := io.Copy(w, io.LimitReader(zeros{}, n*size))
	return err
}

// zeros is a Reader without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// BenchmarkEcho sends 64 bytes and waits for their echo.
func BenchmarkEcho(b *testing.B) {
	svc := asterisque.NewService()
	ln := tunnel.Listen(svc, number, "echo")
	s, _ := overTCP(b, svc)
	here, there := pair(b, s, ln)
	go io.Copy(there, there) // ends with the connection
	buf := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		_, err := here.Write(buf)
		require.NoError(b, err)
		_, err = io.ReadFull(here, buf)
		require.NoError(b, err)
	}
}

// BenchmarkDial opens a connection, sends a byte in each direction, and closes the connection.
func BenchmarkDial(b *testing.B) {
	svc := asterisque.NewService()
	ln := tunnel.Listen(svc, number, "echo")
	s, _ := overTCP(b, svc)
	go func() { // ends with ln
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }() // ends with the connection
		}
	}()
	defer ln.Close()
	b.ReportAllocs()
	for b.Loop() {
		c, err := tunnel.Dial(background, s, number)
		require.NoError(b, err)
		_, err = c.Write([]byte{1})
		require.NoError(b, err)
		_, err = c.Read(make([]byte, 1))
		require.NoError(b, err)
		require.NoError(b, c.Close())
	}
}
