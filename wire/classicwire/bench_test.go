package classicwire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// BenchmarkCall compares calls over the classic protocol with those over protocol 1.
func BenchmarkCall(b *testing.B) {
	for _, scheme := range []string{"classic", "tcp"} {
		b.Run(scheme, func(b *testing.B) {
			here, there := newNode(b, asterisque.NewService()), newNode(b, offer())
			ln, err := wire.Listen(background, scheme+"://127.0.0.1:0", wire.Options{})
			require.NoError(b, err)
			defer ln.Close()
			s, _ := join(b, here, there, func() (wire.Wire, error) { return wire.Dial(background, ln.URL(), wire.Options{}) }, ln.Accept)
			for name, callers := range map[string]int{"1": 1, "64": 32} {
				// callers for each of two processors
				b.Run(name, func(b *testing.B) { calls(b, s, callers) })
			}
		})
	}
}

func calls(b *testing.B, s *asterisque.Session, callers int) {
	b.ReportAllocs()
	if callers == 1 {
		for b.Loop() {
			if _, err := echo.Call(background, s, "0123456789012345678901234567890123456789012345678901234567890123"); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.SetParallelism(callers)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := echo.Call(background, s, "0123456789012345678901234567890123456789012345678901234567890123"); err != nil {
				b.Error(err)
			}
		}
	})
}
