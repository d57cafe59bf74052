package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// sealed is a stream interceptor that puts a byte before each Block, checks for it in each received
// Block, and flips all other bytes.
func sealed() piping.StreamInterceptor {
	return piping.StreamInterceptor{
		Send: func(b []byte) ([]byte, error) {
			out := append(make([]byte, 0, len(b)+1), '#')
			for _, c := range b {
				out = append(out, ^c)
			}
			return out, nil
		},
		Recv: func(b []byte) ([]byte, error) {
			if len(b) == 0 || b[0] != '#' {
				return nil, errors.New("a Block that is not sealed")
			}
			for i := range b {
				b[i] = ^b[i]
			}
			return b[1:], nil
		},
	}
}

func TestAround_SeesAllBytes(t *testing.T) {
	content := noise(1 << 20)
	whole := func(w *stream.Writer) error { _, err := w.Write(content); return err }
	small := func(w *stream.Writer) error {
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 1+len(rest)%5000)
			if _, err := w.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	}
	from := func(w *stream.Writer) error {
		_, err := w.ReadFrom(iotest.HalfReader(bytes.NewReader(content)))
		return err
	}
	for name, write := range map[string]func(*stream.Writer) error{"Write": whole, "small": small, "ReadFrom": from} {
		for _, size := range []int{1000, stream.DefaultSize, stream.MaxSize} {
			for _, all := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					p := open(t, func(_ context.Context, p *pipe.Pipe) error {
						(*piping.End)(p).Wrap(sealed())
						w := stream.NewWriterSize(p, size)
						return errors.Join(write(w), w.Close())
					})
					(*piping.End)(p).Wrap(sealed())
					var got bytes.Buffer
					var err error
					if r := stream.NewReader(p); all {
						_, err = r.WriteTo(&got)
					} else {
						_, err = io.Copy(&got, iotest.HalfReader(r))
					}
					require.NoError(t, err)
					require.True(t, bytes.Equal(content, got.Bytes()))
				})
			}
		}
	}
}
