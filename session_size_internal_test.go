package asterisque

import (
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestSession_SizeClass bounds the memory of every session, used or not. With its header of 8 bytes
// a Session has the 1,408 of a class of Go's allocator; the next class has 1,536.
func TestSession_SizeClass(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("pointers are smaller here")
	}
	require.LessOrEqual(t, int(unsafe.Sizeof(Session{})), 1400, "what only some need is better allocated when they do")
}
