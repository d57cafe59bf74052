package asterisquetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
)

// A Fake passes values and errors unchanged.
func TestFake_ValuesAndErrors(t *testing.T) {
	lost := &asterisque.Abort{Code: asterisque.ErrSessionClosed.Code, Message: "lost"}
	mine := errors.New("mine")
	deref := asterisque.Func[*int, *int](30, "deref") // values are not copied
	anything := asterisque.Func[any, error](31, "anything")
	require.Empty(t, run(func(t2 *fakeT) {
		fake := asterisquetest.NewFake(t2)
		asterisquetest.Answer(fake, greet, func(ctx context.Context, name string) (string, error) {
			switch name {
			case "lost":
				return "", lost
			case "mine":
				return "", mine
			case "deadline":
				_, ok := ctx.Deadline()
				require.True(t, ok)
			}
			return "hello, " + name, nil
		})
		asterisquetest.Answer(fake, deref, func(_ context.Context, p *int) (*int, error) { return p, nil })
		asterisquetest.Answer(fake, anything, func(_ context.Context, p any) (error, error) { require.Nil(t, p); return nil, nil })

		got, err := greet.Call(background, fake, "asterisk")
		require.NoError(t, err)
		require.Equal(t, "hello, asterisk", got)
		_, err = greet.Call(background, fake, "lost")
		require.Same(t, lost, err)
		require.False(t, asterisque.Repeatable(err))
		_, err = greet.Call(background, fake, "mine")
		require.ErrorIs(t, err, mine)
		_, err = greet.Call(background, fake, "deadline", asterisque.WithTTL(1e9))
		require.NoError(t, err)
		n := new(int)
		same, err := deref.Call(background, fake, n)
		require.NoError(t, err)
		require.Same(t, n, same)
		_, err = anything.Call(background, fake, nil)
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(background)
		cancel()
		_, err = greet.Call(ctx, fake, "asterisk")
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, asterisque.Repeatable(err), "it was not answered")

		asterisquetest.Answer(fake, greet, func(context.Context, string) (string, error) { return "bye", nil })
		got, err = greet.Call(background, fake, "asterisk")
		require.NoError(t, err)
		require.Equal(t, "bye", got, "a later answer is in place of an earlier one")
	}))
}

// Fail ends calls of every kind of a function.
func TestFake_Fail(t *testing.T) {
	require.Empty(t, run(func(t2 *fakeT) {
		fake := asterisquetest.NewFake(t2)
		fake.Fail(greet, asterisque.ErrOverloaded)
		fake.Fail(sum, asterisque.ErrStalled)
		_, err := greet.Call(background, fake, "x")
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		_, err = asterisque.CallOn(background, fake, greet.Number(), nil)
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		_, err = sum.Open(background, fake, 1)
		require.ErrorIs(t, err, asterisque.ErrStalled)
		_, err = asterisque.OpenOn(background, fake, sum.Number(), nil)
		require.ErrorIs(t, err, asterisque.ErrStalled)
		fake.Fail(greet, nil)
		fake.Otherwise = newPeer(t2)
		_, err = greet.Call(background, fake, "x")
		require.NoError(t, err, "nothing answers it any more")
	}))
}

// A call without an answer goes to Otherwise.
func TestFake_Otherwise(t *testing.T) {
	fake := asterisquetest.NewFake(t)
	fake.Otherwise = newPeer(t)
	asterisquetest.Answer(fake, greet, func(context.Context, string) (string, error) { return "from the fake", nil })
	got, err := greet.Call(background, fake, "x")
	require.NoError(t, err)
	require.Equal(t, "from the fake", got)
	raw, err := asterisque.CallOn(background, fake, greet.Number(), []byte{0x61, 'x'})
	require.NoError(t, err)
	require.Equal(t, "\x68hello, x", string(raw), "untyped: from the peer")
	n, err := sumOf(background, fake, 1, 2, 3)
	require.NoError(t, err)
	require.Equal(t, 6, n)
}

// A call without an answer and without Otherwise fails the test.
func TestFake_NoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		call func(on asterisque.Caller) error
		want string
	}{
		"typed": {func(on asterisque.Caller) error { _, err := hold.Call(background, on, "x"); return err },
			`function 11 "hold" is called, for which the fake has no answer, with "x"`},
		"untyped": {func(on asterisque.Caller) error {
			_, err := asterisque.CallOn(background, on, 10, []byte{0x61, 'x'})
			return err
		}, `function 10, untyped, is called, for which the fake has no answer, with "x"`},
		"stream": {func(on asterisque.Caller) error { _, err := sum.Open(background, on, 7); return err },
			`function 20 "sum", as one that carries Blocks, is called, for which the fake has no answer, with 7`},
		"of other types": {func(on asterisque.Caller) error {
			_, err := asterisque.Func[int, string](10, "greet").Call(background, on, 7)
			return err
		}, `function 10 "greet" is called, for which the fake has no answer, with 7`},
		"with another result": {func(on asterisque.Caller) error {
			_, err := asterisque.Func[string, int](10, "greet").Call(background, on, "x")
			return err
		}, ""},
	} {
		said := run(func(t2 *fakeT) {
			fake := asterisquetest.NewFake(t2)
			asterisquetest.Answer(fake, greet, func(context.Context, string) (string, error) { return "", nil })
			err := c.call(fake)
			if c.want == "" {
				require.ErrorContains(t, err, "it is a int, and not a string")
				return
			}
			require.ErrorIs(t, err, asterisque.ErrNoFunction, name)
			require.True(t, asterisque.Repeatable(err), name)
		})
		if c.want == "" {
			require.Empty(t, said)
			continue
		}
		require.Equal(t, []string{"asterisquetest: " + c.want}, said, name)
	}
}
