package piping

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestEnd_Size(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		t.Skip("pointers are smaller here")
	}
	require.LessOrEqual(t, unsafe.Sizeof(End{}), uintptr(208), "of each call")
}
