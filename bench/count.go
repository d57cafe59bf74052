package main

import (
	"encoding/binary"
	"fmt"
)

// countBytes returns n as 8 bytes: the form of a reader's count.
func countBytes(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// countOf returns the number in the output of countBytes.
func countOf(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("a count has 8 bytes and not %d", len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}
