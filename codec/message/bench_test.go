package message

import (
	"testing"
)

var sizes = []struct {
	name string
	n    int
}{{"64B", 64}, {"4KiB", 4 << 10}, {"1MiB", 1 << 20}}

func BenchmarkOpen(b *testing.B) {
	for _, size := range sizes {
		m := Open{Pipe: 1 << 20, Function: 300, Params: make([]byte, size.n)}
		benchmarkMessage(b, size.name, size.n, &m, func(frame []byte) error { _, err := ParseOpen(frame); return err })
	}
}

func BenchmarkOpenWithMeta(b *testing.B) {
	m := Open{Pipe: 1 << 20, Function: 300, Params: make([]byte, 64), Meta: meta}
	benchmarkMessage(b, "64B", 64, &m, func(frame []byte) error { _, err := ParseOpen(frame); return err })
}

func BenchmarkBlock(b *testing.B) {
	for _, size := range sizes {
		m := Block{Pipe: 1 << 20, Payload: make([]byte, size.n)}
		benchmarkMessage(b, size.name, size.n, &m, func(frame []byte) error { _, err := ParseBlock(frame); return err })
	}
}

func BenchmarkClose(b *testing.B) {
	m := Close{Pipe: 1 << 20, Result: make([]byte, 64)}
	benchmarkMessage(b, "64B", 64, &m, func(frame []byte) error { _, err := ParseClose(frame); return err })
}

func benchmarkMessage(b *testing.B, name string, size int, m appender, parse func([]byte) error) {
	frame := m.AppendTo(nil)
	b.Run("AppendTo/"+name, func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size))
		buf := make([]byte, 0, len(frame))
		for b.Loop() {
			buf = m.AppendTo(buf[:0])
		}
	})
	b.Run("Parse/"+name, func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size))
		for b.Loop() {
			if err := parse(frame); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMetadata(b *testing.B) {
	for name, m := range map[string]map[string]any{"3 entries": numbered(3, 16), "at the bound": atTheBound()} {
		data, err := AppendMetadata(nil, m)
		if err != nil {
			b.Fatal(err)
		}
		bench := func(what string, f func() error) {
			b.Run(what+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		buf := make([]byte, 0, len(data))
		bench("Append", func() error { _, err := AppendMetadata(buf, m); return err })
		bench("Check", func() error { return CheckMetadata(data) })
		bench("Parse", func() error { _, err := ParseMetadata(data); return err })
	}
}
