package codec

import (
	"fmt"
	"testing"
)

var sizes = []struct {
	name string
	n    int
}{{"64B", 64}, {"4KiB", 4 << 10}}

func BenchmarkValues(b *testing.B) {
	for _, c := range []Values{CBOR, JSON, Raw} {
		for _, size := range sizes {
			v := string(make([]byte, size.n))
			data, err := c.Append(nil, &v)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("Append/%s/%s", c.Name(), size.name), func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]byte, 0, len(data)+1)
				for b.Loop() {
					buf, _ = c.Append(buf[:0], &v)
				}
			})
			b.Run(fmt.Sprintf("Decode/%s/%s", c.Name(), size.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_ = c.Decode(data, &v)
				}
			})
		}
	}
}
