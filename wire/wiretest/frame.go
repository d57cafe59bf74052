package wiretest

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// same returns how got differs from want.
func same(got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes arrived as %d", len(want), len(got))
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the %d bytes that arrived are not those that were written", len(got))
	}
	return nil
}

// frame returns size bytes that differ from those of other numbers, if size is 8 or more in all 8
// bytes.
func frame(number, size int) []byte {
	f := make([]byte, size)
	fill(f, number)
	return f
}

func fill(f []byte, number int) {
	x := uint64(number)*0x9e3779b97f4a7c15 + 1
	for len(f) >= 8 {
		binary.LittleEndian.PutUint64(f, x)
		x = x*6364136223846793005 + 1442695040888963407
		f = f[8:]
	}
	for i := range f {
		f[i] = byte(number) + byte(i)
	}
}

// batch returns frames in the form of WriteBatch.
func batch(frames ...[]byte) []byte {
	var b []byte
	for _, f := range frames {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

// pieces splits data, inside lengths and inside frames. One piece is empty.
func pieces(data []byte) (list [][]byte) {
	for _, n := range []int{1, 2, 0, 500, 70_000} {
		n = min(n, len(data))
		list = append(list, data[:n])
		data = data[n:]
	}
	return append(list, data)
}
