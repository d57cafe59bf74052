package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/tunnel"
)

// noise returns n pseudorandom bytes, the same in every run.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// both runs test in a bubble with the two ends of a connection, and once more with the ends
// exchanged.
func both(t *testing.T, test func(t *testing.T, here, there *tunnel.Conn)) {
	t.Run("dialler", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := connected(t)
			test(t, a, b)
		})
	})
	t.Run("acceptor", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, a := connected(t)
			test(t, a, b)
		})
	})
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	n, err := c.Write([]byte(text))
	require.NoError(t, err)
	require.Len(t, text, n)
}

func wantRead(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

func wantEOF(t *testing.T, c net.Conn) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.True(t, err == io.EOF, "%v is io.EOF itself", err)
}

// wantError requires that err is want, wrapped as package net wraps errors.
func wantError(t *testing.T, want, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "asterisque", op.Net)
}

// A small Write leaves at once.
func TestWrite_SmallAtOnce(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		for range 3 {
			write(t, here, "ping")
			wantRead(t, there, "ping")
			write(t, there, "pong")
			wantRead(t, here, "pong")
		}
	})
}

// The end of a large Write leaves without another Write.
func TestWrite_EndOfLarge(t *testing.T) {
	for _, size := range []int{32<<10 - 1, 32 << 10, 63 << 10, 63<<10 + 1, 64 << 10, 1 << 20} {
		both(t, func(t *testing.T, here, there *tunnel.Conn) {
			content := noise(size)
			go here.Write(content) // ends with the read
			got := make([]byte, size)
			_, err := io.ReadFull(there, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got))
		})
	}
}

// Concurrent Writes stay in one piece.
func TestWrite_Concurrent(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		const writers, rounds, size = 8, 5, 200_000
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				piece := bytes.Repeat([]byte{byte('a' + i)}, size)
				for range rounds {
					n, err := here.Write(piece)
					if n != size || err != nil {
						t.Errorf("%d bytes: %v", n, err)
					}
				}
			})
		}
		go func() { wg.Wait(); here.Close() }()
		piece, seen := make([]byte, size), map[byte]int{}
		for {
			_, err := io.ReadFull(there, piece)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			require.Equal(t, size, bytes.Count(piece, piece[:1]))
			seen[piece[0]]++
		}
		require.Len(t, seen, writers)
	})
}

// Concurrent Reads get all bytes once.
func TestRead_Concurrent(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		const size = 1 << 20
		go func() { here.Write(make([]byte, size)); here.Close() }()
		var wg sync.WaitGroup
		got := make(chan int, 4)
		for range cap(got) {
			wg.Go(func() {
				n, err := io.Copy(io.Discard, struct{ io.Reader }{there})
				if err != nil {
					t.Error(err)
				}
				got <- int(n)
			})
		}
		wg.Wait()
		close(got)
		sum := 0
		for n := range got {
			sum += n
		}
		require.Equal(t, size, sum)
	})
}

// io.Copy works in both directions.
func TestCopy_BothWays(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		content := noise(3 << 20)
		go func() {
			io.Copy(there, there) // WriteTo, and the Writes within
			there.Close()
		}()
		go func() {
			n, err := here.ReadFrom(iotest.HalfReader(bytes.NewReader(content)))
			if err != nil || n != int64(len(content)) {
				t.Errorf("sent %d: %v", n, err)
			}
			here.CloseWrite()
		}()
		var got bytes.Buffer
		n, err := here.WriteTo(&got)
		require.NoError(t, err)
		require.EqualValues(t, len(content), n)
		require.True(t, bytes.Equal(content, got.Bytes()))
	})
}

// writerFunc is a function that implements io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// The failure of the other end of a copy is returned.
func TestCopy_FailureReturned(t *testing.T) {
	boom := errors.New("boom")
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		write(t, here, "twelve bytes")
		n, err := there.WriteTo(writerFunc(func([]byte) (int, error) { return 5, boom }))
		require.True(t, err == boom, "%v", err)
		require.EqualValues(t, 5, n)
		write(t, here, "twelve bytes")
		n, err = there.WriteTo(writerFunc(func([]byte) (int, error) { return 7, nil }))
		require.True(t, err == io.ErrShortWrite, "%v", err)
		require.EqualValues(t, 7, n)

		n, err = here.ReadFrom(io.MultiReader(strings.NewReader("ten bytes."), iotest.ErrReader(boom)))
		require.True(t, err == boom, "%v", err)
		require.EqualValues(t, 10, n)
		wantRead(t, there, "ten bytes.")
	})
}

// outcome runs f, and returns the value of its panic, or nil.
func outcome(f func()) (v any) {
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	return <-done
}

// Application code that ends the goroutine affects only its connection.
func TestConn_Goexit(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		for _, breaks := range []func(){func() { panic("broken") }, func() { panic(nil) }} {
			write(t, here, "x")
			require.NotNil(t, outcome(func() { there.WriteTo(writerFunc(func([]byte) (int, error) { breaks(); return 1, nil })) }))
			require.NotNil(t, outcome(func() { here.ReadFrom(readerFunc(func([]byte) (int, error) { breaks(); return 1, nil })) }))
			write(t, here, "it continues")
			wantRead(t, there, "it continues")
		}
	})
}

// A connection ends with its session.
func TestConn_SessionEnds(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		s := here.Session()
		errs := make(chan error)
		go func() { _, err := here.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := here.Write(make([]byte, 10<<20)); errs <- err }()
		synctest.Wait()
		require.NoError(t, s.Close())
		wantError(t, asterisque.ErrSessionClosed, <-errs)
		wantError(t, asterisque.ErrSessionClosed, <-errs)
		synctest.Wait()
		_, err := there.Read(make([]byte, 1))
		wantError(t, asterisque.ErrSessionClosed, err)
		require.NoError(t, here.Close())
		require.NoError(t, there.Close())
	})
}

// Read returns the error of a handler with its code.
func TestRead_HandlerError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(number, "full", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
			return nil, &asterisque.Abort{Code: 1001, Message: "disk full"}
		})
		s, _ := inMemory(t, svc)
		c, err := tunnel.Dial(background, s, number)
		require.NoError(t, err)
		for range 2 {
			_, err = c.Read(make([]byte, 1))
			var a *asterisque.Abort
			require.ErrorAs(t, err, &a)
			require.EqualValues(t, 1001, a.Code)
		}
		_, err = c.Write(make([]byte, 1))
		require.ErrorContains(t, err, "disk full")
	})
}

// The addresses are those of the Wire.
func TestConn_Addresses(t *testing.T) {
	svc := asterisque.NewService()
	ln := tunnel.Listen(svc, number, "test")
	s, accepted := overTCP(t, svc)
	here, there := pair(t, s, ln)
	require.Equal(t, s.Peer().LocalAddr, here.LocalAddr())
	require.Equal(t, s.Peer().RemoteAddr, here.RemoteAddr())
	require.Equal(t, here.LocalAddr().String(), there.RemoteAddr().String())
	require.Equal(t, here.RemoteAddr().String(), there.LocalAddr().String())
	require.Same(t, s, here.Session())
	require.Same(t, accepted, there.Session())

	p, err := s.Open(background, number, nil)
	require.NoError(t, err)
	c := tunnel.NewConn(p, nil)
	defer c.Close()
	require.Nil(t, c.Session())
	require.Equal(t, tunnel.Addr(number), c.LocalAddr())
	require.Equal(t, tunnel.Addr(number), c.RemoteAddr())
	require.Equal(t, "function 80", c.RemoteAddr().String())
	require.Equal(t, "asterisque", c.RemoteAddr().Network())
}

// NewConn makes a connection of a pipe.
func TestNewConn_OfPipe(t *testing.T) {
	require.PanicsWithValue(t, "tunnel: NewConn of a nil pipe: look at the error of Open first", func() { tunnel.NewConn(nil, nil) })
}
