package classicwire_test

import (
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
)

// BenchmarkCall compares calls over the classic protocol with those over protocol 1.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		scheme string
		form   classic.Codec
	}{{"classic", classic.MessagePack}, {"classic", classic.Simple}, {"tcp", classic.MessagePack}} {
		b.Run(c.scheme+"/"+c.form.Name(), func(b *testing.B) {
			s, _ := connectNodes(b, c.scheme, newNode(b, c.form, asterisque.NewService()), newNode(b, c.form, offer()))
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
