package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

func TestMain(m *testing.M) { leak.Main(m) }

var background = context.Background()

// open returns the pipe of a call with the handler h, on a node with opts. Everything ends with the
// test.
func open(t *testing.T, h func(ctx context.Context, p *pipe.Pipe) error, opts ...asterisque.Option) *pipe.Pipe {
	t.Helper()
	svc := asterisque.NewService()
	svc.Handle(1, "stream", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) { return nil, h(ctx, p) })
	here, there := asterisque.NewNode(), asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	s, _ := asterisquetest.ConnectNodes(t, here, there)
	p, err := s.Open(background, 1, nil)
	require.NoError(t, err)
	t.Cleanup(func() { p.Abort(nil); here.Close(); there.Close() })
	return p
}

// noise returns n bytes that are the same in every run.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// send returns a handler that writes content in pieces of at most size bytes.
func send(content []byte, size int) func(context.Context, *pipe.Pipe) error {
	return func(_ context.Context, p *pipe.Pipe) error {
		w := stream.NewWriterSize(p, size)
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 1+len(rest)%1000)
			if _, err := w.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return w.Close()
	}
}

func TestReader_ReadsLikeIOTest(t *testing.T) {
	content := noise(10_000)
	for _, size := range []int{0, 1, 777, 1 << 20} {
		require.NoError(t, iotest.TestReader(stream.NewReader(open(t, send(content, size))), content))
	}
	for name, wrap := range map[string]func(io.Reader) io.Reader{"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with EOF": iotest.DataErrReader} {
		got, err := io.ReadAll(wrap(stream.NewReader(open(t, send(content, 300)))))
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(content, got), name)
	}
}

func TestCopy_BothWays(t *testing.T) {
	content := noise(3 << 20)
	p := open(t, func(_ context.Context, p *pipe.Pipe) error { // echo
		w := stream.NewWriter(p)
		_, err := io.Copy(w, stream.NewReader(p))
		return errors.Join(err, w.Close())
	})
	go func() {
		w := stream.NewWriter(p)
		n, err := w.ReadFrom(iotest.HalfReader(bytes.NewReader(content)))
		if err != nil || n != int64(len(content)) {
			t.Errorf("sent %d: %v", n, err)
		}
		w.Close()
	}()
	var got bytes.Buffer
	n, err := stream.NewReader(p).WriteTo(&got)
	require.NoError(t, err)
	require.EqualValues(t, len(content), n)
	require.True(t, bytes.Equal(content, got.Bytes()))
}

func TestWriter_BlockSize(t *testing.T) {
	for _, c := range []struct{ size, most int }{{0, stream.DefaultSize}, {100, 100}, {1 << 20, stream.MaxSize}} {
		p := open(t, func(_ context.Context, p *pipe.Pipe) error {
			w := stream.NewWriterSize(p, c.size)
			_, err := w.Write(make([]byte, 300_000))
			return errors.Join(err, w.Close())
		})
		sum := 0
		for {
			b, err := p.Recv(background)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			require.LessOrEqual(t, len(b.Payload), c.most)
			sum += len(b.Payload)
		}
		require.Equal(t, 300_000, sum)
	}
}

func TestFlush_SendsSmallWrites(t *testing.T) {
	flush, flushed := make(chan struct{}), make(chan struct{})
	p := open(t, func(_ context.Context, p *pipe.Pipe) error {
		w := stream.NewWriter(p)
		io.WriteString(w, "hello ")
		io.WriteString(w, "world")
		<-flush
		err := w.Flush()
		<-flushed
		return errors.Join(err, w.Close(), w.Close())
	})
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err := p.Recv(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "nothing was sent yet")
	close(flush)
	b, err := p.Recv(background)
	require.NoError(t, err)
	require.Equal(t, "hello world", string(b.Payload), "in one Block")
	close(flushed)
	_, err = p.Recv(background)
	require.Equal(t, io.EOF, err)
	_, err = p.Result(background)
	require.NoError(t, err)
}

func TestWriter_AfterClose(t *testing.T) {
	p := open(t, func(ctx context.Context, p *pipe.Pipe) error { <-ctx.Done(); return nil })
	w := stream.NewWriter(p)
	require.NoError(t, w.Close())
	_, err := w.Write([]byte("x"))
	require.ErrorIs(t, err, pipe.ErrEnded)
	_, err = w.ReadFrom(strings.NewReader("x"))
	require.ErrorIs(t, err, pipe.ErrEnded)
	require.ErrorIs(t, w.Flush(), pipe.ErrEnded)
}

func TestClose_AfterCallEnded(t *testing.T) {
	p := open(t, func(ctx context.Context, p *pipe.Pipe) error {
		_, err := p.Recv(ctx)
		return err
	})
	w := stream.NewWriter(p)
	_, err := io.WriteString(w, "all that the peer wants")
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	_, err = p.Result(background)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	_, err = w.Write([]byte("x"))
	require.ErrorIs(t, err, pipe.ErrEnded)
}

func TestReader_CloseStopsWriter(t *testing.T) {
	p := open(t, func(_ context.Context, p *pipe.Pipe) error {
		r := stream.NewReader(p)
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return err
		}
		r.Close()
		_, err := r.Read(make([]byte, 1))
		<-p.Done()
		return err
	})
	w := stream.NewWriter(p)
	var err error
	for err == nil {
		_, err = w.Write(make([]byte, 10_000))
	}
	require.ErrorIs(t, err, asterisque.ErrStopped)
	_, again := w.Write([]byte("x"))
	require.ErrorIs(t, again, asterisque.ErrStopped)
	require.ErrorIs(t, w.Close(), asterisque.ErrStopped)
}

func TestDeadline_EndsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		p := open(t, func(ctx context.Context, p *pipe.Pipe) error {
			<-read
			_, err := io.Copy(io.Discard, stream.NewReader(p))
			return err
		})
		w, r := stream.NewWriter(p), stream.NewReader(p)
		w.SetWriteDeadline(time.Now().Add(time.Second))
		_, err := w.Write(make([]byte, 10<<20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		r.SetReadDeadline(time.Now().Add(time.Second))
		_, err = r.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		close(read)
		w.SetWriteDeadline(time.Time{})
		r.SetReadDeadline(time.Time{})
		_, err = w.Write(make([]byte, 10<<20))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		_, err = r.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
	})
}

func TestDeadline_KeepsAllBytes(t *testing.T) {
	for _, size := range []int{0, 1, 700, 1000, 2500} { // bytes of each Write; 0 is ReadFrom
		synctest.Test(t, func(t *testing.T) {
			content := noise(200_000)
			var got bytes.Buffer
			p := open(t, func(_ context.Context, p *pipe.Pipe) error {
				r, room := stream.NewReader(p), make([]byte, 5000)
				for {
					fakeclock.Sleep(time.Second) // longer than the deadline
					n, err := r.Read(room)
					got.Write(room[:n])
					if err == io.EOF {
						return nil
					} else if err != nil {
						return err
					}
				}
			})
			w, passed := stream.NewWriterSize(p, 1000), 0
			for rest := content; len(rest) > 0; {
				w.SetWriteDeadline(time.Now().Add(700 * time.Millisecond))
				n, err := int64(0), error(nil)
				if size == 0 {
					n, err = w.ReadFrom(bytes.NewReader(rest))
				} else {
					var k int
					k, err = w.Write(rest[:min(size, len(rest))])
					n = int64(k)
				}
				if err != nil {
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					passed++
				}
				rest = rest[n:]
			}
			w.SetWriteDeadline(time.Time{})
			require.NoError(t, w.Close())
			_, err := p.Result(background)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got.Bytes()))
			require.Positive(t, passed, "there were deadlines that passed")
		})
	}
}

func TestWriter_KeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, func(ctx context.Context, _ *pipe.Pipe) error { <-ctx.Done(); return nil })
		w := stream.NewWriter(p)
		w.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := w.Write(make([]byte, 1<<20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.GreaterOrEqual(t, n, 64<<10-3*512, "the window of a handler that begins, but for the overhead of a few Blocks")
		require.Less(t, n, 64<<10)
	})
}

func TestAbort_KeepsItsCode(t *testing.T) {
	p := open(t, func(context.Context, *pipe.Pipe) error { return &asterisque.Abort{Code: 1001, Message: "disk full"} })
	<-p.Done()
	_, err := stream.NewReader(p).Read(make([]byte, 1))
	var a *asterisque.Abort
	require.ErrorAs(t, err, &a)
	require.EqualValues(t, 1001, a.Code)
	_, err = stream.NewWriter(p).Write(make([]byte, 100_000))
	require.ErrorAs(t, err, &a)
}

func TestCopy_ReturnsFailures(t *testing.T) {
	boom := errors.New("boom")
	p := open(t, send(noise(1000), 0))
	n, err := stream.NewReader(p).WriteTo(failingWriter{boom})
	require.ErrorIs(t, err, boom)
	require.EqualValues(t, 10, n)

	p = open(t, func(ctx context.Context, _ *pipe.Pipe) error { <-ctx.Done(); return nil })
	n, err = stream.NewWriter(p).ReadFrom(io.MultiReader(strings.NewReader("ten bytes."), iotest.ErrReader(boom)))
	require.ErrorIs(t, err, boom)
	require.EqualValues(t, 10, n)
}

// failingWriter accepts ten bytes and fails.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 10, w.err }

func TestWriter_PeerMaxBlock(t *testing.T) {
	content := noise(100_000)
	var got []byte
	largest := 0
	p := open(t, func(ctx context.Context, p *pipe.Pipe) error {
		for {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			got, largest = append(got, b.Payload...), max(largest, len(b.Payload))
		}
	}, asterisque.WithLimits(asterisque.Limits{MaxMessage: 2000}))
	w := stream.NewWriter(p)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.ErrorIs(t, p.Send(background, make([]byte, p.MaxBlock()+1)), asterisque.ErrTooLarge)
	require.NoError(t, w.Close())
	_, err = p.Result(background)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.Equal(t, p.MaxBlock(), largest)
	require.LessOrEqual(t, largest, 2000)
}
