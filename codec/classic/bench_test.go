package classic_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/codec/classic"
)

// benched are typical values of applications.
func benched() map[string]any {
	numbers := make([]int32, 1000)
	for i := range numbers {
		numbers[i] = int32(i) * 7
	}
	bulk := make([]byte, 4<<10)
	return map[string]any{
		"person":       &nested{Point: &tagged{X: 1, Y: -2}, List: []pair{{1, 2}}, Map: map[string]int8{}, Any: "Ada Lovelace"},
		"1000 numbers": &numbers,
		"4 KiB":        &bulk,
	}
}

func eachBench(b *testing.B, bench func(b *testing.B, form classic.Codec)) {
	for _, form := range codecs {
		b.Run(form.Name(), func(b *testing.B) { bench(b, form) })
	}
}

func BenchmarkAppend(b *testing.B) {
	eachBench(b, func(b *testing.B, form classic.Codec) {
		for name, v := range benched() {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				var room []byte
				for b.Loop() {
					var err error
					if room, err = form.Append(room[:0], v); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(room)), "bytes")
			})
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	eachBench(b, func(b *testing.B, form classic.Codec) {
		for name, v := range benched() {
			data, err := form.Append(nil, v)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := form.Decode(data, v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

// BenchmarkMessages encodes and parses a call of a few parameters and its result.
func BenchmarkMessages(b *testing.B) {
	eachBench(b, func(b *testing.B, form classic.Codec) {
		params, err := form.Append(nil, classic.Params{"Ada", int32(36), true})
		if err != nil {
			b.Fatal(err)
		}
		count, params, err := form.SplitParams(params)
		if err != nil {
			b.Fatal(err)
		}
		open := classic.Open{Pipe: 7, Function: 300, Count: count, Params: params}
		result := classic.Close{Pipe: 7, Result: []byte{0}}
		var room []byte
		b.Run("append", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				room, _ = open.AppendTo(room[:0], form)
				room, _ = result.AppendTo(room, form)
			}
			b.ReportMetric(float64(len(room)), "bytes")
		})
		b.Run("parse", func(b *testing.B) {
			b.ReportAllocs()
			d := classic.Decoder{Codec: form}
			for b.Loop() {
				_, n, err := d.Next(room, classic.MaxMessage)
				if err == nil {
					_, _, err = d.Next(room[n:], classic.MaxMessage)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
