package classicwire_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/pipe"
)

// line is one message of a session between two programs of the original.
type line struct {
	fromClient bool
	hex        string
}

func readTranscript(t *testing.T) (lines []line) {
	data, err := os.ReadFile("testdata/transcript-simple.txt")
	require.NoError(t, err)
	for l := range strings.Lines(string(data)) {
		f := strings.Fields(l)
		if f[1] != "--" {
			lines = append(lines, line{f[0] == "C->S", f[1]})
		}
	}
	require.Greater(t, len(lines), 20)
	return lines
}

// originals returns a service with the functions of the original in the transcript and the other
// records.
func originals(form classic.Codec) *asterisque.Service {
	svc := asterisque.NewService()
	asterisque.Func[string, string](10, "greet").Handle(svc, func(_ context.Context, s string) (string, error) { return "hello, " + s, nil })
	asterisque.Func[string, string](11, "surround").Handle(svc, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	svc.Handle(20, "sum", sumOfTexts(form))
	surround := asterisque.Func[string, string](11, "surround")
	asterisque.Func[string, string](30, "callback").Handle(svc, func(ctx context.Context, s string) (string, error) {
		return surround.Call(ctx, asterisque.SessionOf(ctx), s)
	})
	asterisque.Func[classic.Params, []any](40, "echo").Handle(svc, func(_ context.Context, p classic.Params) ([]any, error) { return p, nil })
	asterisque.Func[struct{}, struct{}](50, "fail").Handle(svc, func(context.Context, struct{}) (struct{}, error) {
		return struct{}{}, errors.New("unexpected error")
	})
	return svc
}

// sumOfTexts returns a handler that returns each received number as a text in a Block, and whose
// result is the sum.
func sumOfTexts(form classic.Codec) func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
	return func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		var sum int32
		for {
			b, err := p.Recv(ctx)
			if err != nil {
				return form.Append(nil, sum)
			}
			n, err := strconv.Atoi(string(b.Payload))
			if err != nil {
				return nil, errors.New("unexpected error")
			}
			sum += int32(n)
			if err := p.Send(ctx, b.Payload); err != nil {
				return nil, err
			}
		}
	}
}

func isSync(hex string) bool { return strings.HasPrefix(hex, "2a510032") }

// A server answers as the original did.
func TestGolden_Server(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, done := rawClient(t, form, newNode(t, form, originals(form)))
		for _, l := range readTranscript(t) {
			switch {
			case l.fromClient:
				p.send(l.hex)
			case isSync(l.hex):
				s := p.wantSync()
				require.NotZero(t, s.Session)
				require.EqualValues(t, 3, s.Ping)
				require.EqualValues(t, 1800, s.Timeout)
			default:
				p.want(l.hex)
			}
		}
		p.wantEnd()
		o := <-done
		require.NoError(t, o.err)
		require.Equal(t, "4d05c476-df6e-4ca7-8553-1faabb22b4cb", o.s.Peer().ID)
		<-o.s.Done()
		require.ErrorContains(t, o.s.Err(), "the peer closed the session")
	})
}

// A client sends the same as the original did.
func TestGolden_Client(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		node := newNode(t, form, originals(form), asterisque.WithID("4d05c476-df6e-4ca7-8553-1faabb22b4cb"))
		p, done := rawServer(t, form, node)
		calls := make(chan error, 1)
		go func() { // ends with the session
			o := <-done
			if o.err == nil {
				o.err = callAll(form, o.s)
				o.s.Close()
			}
			calls <- o.err
		}()
		for _, l := range readTranscript(t) {
			switch {
			case !l.fromClient:
				p.send(l.hex)
			case isSync(l.hex):
				s := p.wantSync()
				require.Zero(t, s.Session)
				require.Equal(t, "4d05c476-df6e-4ca7-8553-1faabb22b4cb", s.Node.String())
				require.EqualValues(t, 1, s.Version)
				require.EqualValues(t, 3, s.Ping)
				require.EqualValues(t, 1800, s.Timeout)
			default:
				p.want(l.hex)
			}
		}
		p.wantEnd()
		require.NoError(t, <-calls)
	})
}

// callAll makes the calls of the client in the transcript.
func callAll(form classic.Codec, s *asterisque.Session) error {
	if got, err := asterisque.Func[string, string](10, "greet").Call(background, s, "asterisque"); err != nil || got != "hello, asterisque" {
		return errors.Join(err, errors.New(got))
	}
	want, _ := form.Append(nil, int32(150))
	sum, err := s.Open(background, 20, nil)
	if err != nil {
		return err
	}
	for _, n := range []string{"10", "20", "30", "40", "50"} {
		if err := sum.Send(background, []byte(n)); err != nil {
			return err
		}
	}
	sum.CloseSend()
	if result, err := sum.Result(background); err != nil || !bytes.Equal(result, want) {
		return errors.Join(err, errors.New(string(result)))
	}
	if got, err := asterisque.Func[string, string](30, "callback").Call(background, s, "hello"); err != nil || got != "*hello*" {
		return errors.Join(err, errors.New(got))
	}
	many := classic.Params{
		nil, true, int8(-1), int16(-2), int32(3), int64(4), float32(0.5), 0.25, "日本", classic.UUID{7: 1, 15: 2}, []any{int32(1), "a"}, map[string]int64{"k": 1},
	}
	if got, err := asterisque.Func[classic.Params, []any](40, "echo").Call(background, s, many); err != nil || len(got) != len(many) {
		return errors.Join(err, errors.New("another list"))
	}
	_, err = asterisque.Func[struct{}, struct{}](50, "fail").Call(background, s, struct{}{})
	if err == nil || !strings.Contains(err.Error(), "unexpected error") {
		return errors.New("the call should have failed")
	}
	return nil
}
