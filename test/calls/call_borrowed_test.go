package calls

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/pipe"
)

// intact reports whether b is still the result of noise.
func intact(b []byte) bool {
	data, want := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	sum := sha256.Sum256(data)
	return bytes.Equal(sum[:], want)
}

// TestBorrowed_UntilReturn runs many concurrent calls with parameters of all sizes. Their handlers
// and callers check every byte.
func TestBorrowed_UntilReturn(t *testing.T) {
	check := func(params []byte) ([]byte, error) {
		for range 3 {
			if !intact(params) {
				return nil, codec.ErrBadParams
			}
			runtime.Gosched()
		}
		return params, nil
	}
	svc := asterisque.NewService()
	testkit.Raw.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return check(b) }, asterisque.WithBorrowedParams())
	testkit.Decoded.Handle(svc, func(_ context.Context, l testkit.Letter) (testkit.Letter, error) {
		b, err := check(l.Text)
		return testkit.Letter{Text: b}, err
	})
	svc.Handle(62, "untyped", func(_ context.Context, _ *pipe.Pipe, b []byte) ([]byte, error) { return check(b) }, asterisque.WithBorrowedParams())
	inline := asterisque.Func[[]byte, []byte](63, "inline")
	inline.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return check(b) }, asterisque.WithBorrowedParams(), asterisque.WithInline())
	lent, _ := testkit.Connect(t, svc, asterisque.WithCodecs(codec.Raw))
	plain, _ := testkit.Connect(t, svc)

	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 0))
			room := asterisque.WithResultBuffer(make([]byte, 100_000))
			for i := range 32 {
				params := testkit.Noise(rnd, rnd.IntN(160_000))
				var result []byte
				var err error
				switch i % 4 {
				case 0:
					result, err = testkit.Raw.Call(testkit.Background, lent, params, room)
				case 1:
					result, err = lent.Call(testkit.Background, 62, params, room)
				case 2:
					var l testkit.Letter
					l, err = testkit.Decoded.Call(testkit.Background, plain, testkit.Letter{Text: params}, room)
					result = l.Text
				default:
					result, err = inline.Call(testkit.Background, lent, params)
				}
				if err != nil || !bytes.Equal(params, result) {
					t.Errorf("%d bytes: %v", len(params), err)
				}
			}
		})
	}
	wg.Wait()
}

// Parameters that are not borrowed belong to the handler for good.
func TestParams_NotBorrowed(t *testing.T) {
	var kept [][]byte
	svc := asterisque.NewService()
	testkit.Raw.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { kept = append(kept, b); return nil, nil })
	testkit.Decoded.Handle(svc, func(_ context.Context, l testkit.Letter) (testkit.Letter, error) {
		kept = append(kept, l.Text)
		return testkit.Letter{}, nil
	}, asterisque.WithBorrowedParams())
	lent, _ := testkit.Connect(t, svc, asterisque.WithCodecs(codec.Raw))
	plain, _ := testkit.Connect(t, svc)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		_, err := testkit.Raw.Call(testkit.Background, lent, testkit.Noise(rnd, 60_000))
		require.NoError(t, err)
		_, err = testkit.Decoded.Call(testkit.Background, plain, testkit.Letter{Text: testkit.Noise(rnd, 60_000)})
		require.NoError(t, err)
	}
	require.Len(t, kept, 60)
	for _, b := range kept {
		require.True(t, intact(b))
	}
}

// Large calls reuse memory.
func TestCall_LargeReusesMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has pools forget")
	}
	svc := asterisque.NewService()
	testkit.Raw.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil }, asterisque.WithBorrowedParams())
	dialled, _ := testkit.Connect(t, svc, asterisque.WithCodecs(codec.Raw))
	for size, most := range map[int]int{4 << 10: 2 << 10, 64 << 10: 16 << 10} {
		params, room := make([]byte, size), asterisque.WithResultBuffer(make([]byte, size))
		call := func() {
			_, err := testkit.Raw.Call(testkit.Background, dialled, params, room)
			require.NoError(t, err)
		}
		call()
		const calls = 200
		spent := weightest.Allocated(func() {
			for range calls {
				call()
			}
		})
		require.Less(t, spent/calls, most, "bytes for a call of %d, both ends", size)
	}
}

// A result buffer is used if it has enough room.
func TestResultBuffer_Used(t *testing.T) {
	svc := asterisque.NewService()
	svc.Handle(5, "echo", func(_ context.Context, _ *pipe.Pipe, b []byte) ([]byte, error) { return b, nil })
	dialled, _ := testkit.Connect(t, svc)
	buf := []byte("what was here before")
	result, err := dialled.Call(testkit.Background, 5, []byte("result"), asterisque.WithResultBuffer(buf))
	require.NoError(t, err)
	require.Equal(t, "result", string(result))
	require.Same(t, &buf[0], &result[0])

	long := bytes.Repeat([]byte("long "), 100)
	result, err = dialled.Call(testkit.Background, 5, long, asterisque.WithResultBuffer(buf))
	require.NoError(t, err)
	require.Equal(t, long, result)
	require.Equal(t, "result", string(buf[:6]), "it does not fit, and so nothing of it is there")
}

// TestResultBuffer_AfterCall fails, under the race detector, if an answer is still written into the
// buffer of a cancelled call.
func TestResultBuffer_AfterCall(t *testing.T) {
	svc := asterisque.NewService()
	svc.Handle(5, "slow echo", func(ctx context.Context, _ *pipe.Pipe, b []byte) ([]byte, error) {
		runtime.Gosched()
		return b, nil
	})
	dialled, _ := testkit.Connect(t, svc)
	buf := make([]byte, 1000)
	given := 0
	for i := range 300 {
		ctx, cancel := context.WithTimeout(testkit.Background, time.Duration(i)*time.Microsecond)
		if _, err := dialled.Call(ctx, 5, make([]byte, 1000), asterisque.WithResultBuffer(buf)); err != nil {
			require.ErrorIs(t, err, asterisque.ErrExpired)
			given++
		}
		clear(buf)
		cancel()
	}
	require.Positive(t, given)
}
