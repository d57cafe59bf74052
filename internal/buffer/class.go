package buffer

import "math/bits"

// Buffers have sixteen sizes from each power of two to the next, so that the smallest sufficient
// buffer exceeds its content by at most a 16th.
const (
	leastShift = 10 // the smallest has 1 KiB
	stepShift  = 4
	steps      = 1 << stepShift
	// the largest has a 16th more than 4 MiB: room for the fields of a frame around a payload
	classes = (22-leastShift)*steps + 2

	// Least and Most are the sizes, in bytes, of the smallest and the largest buffer that is kept.
	Least = 1 << leastShift
	Most  = 4<<20 + 4<<20/steps
)

// class returns the pool with the buffers for size bytes.
func class(size int) int {
	if size <= Least {
		return 0
	}
	shift := bits.Len(uint(size-1)) - 1 - stepShift // of a step
	return (shift+stepShift-leastShift)*steps + (size-1)>>shift - steps + 1
}

// classSize returns the size of the buffers of a pool.
func classSize(class int) int { return (steps + class%steps) << (class/steps + leastShift - stepShift) }

// allocations contains the sizes of the allocator for small objects without pointers. Larger
// objects are allocated in whole pages.
var allocations = [...]uint16{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512,
	576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5376, 6144,
	6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576, 27264,
	28672, 32768,
}

const (
	page    = 8 << 10
	largest = 32 << 10 // of allocations
	near    = 1 << 10  // sizes are multiples of 8 up to here, and of 128 above
)

// fine and coarse contain the allocation for each 8 bytes up to near, and for each 128 bytes up to
// largest.
var (
	fine   [near/8 + 1]uint16
	coarse [(largest-near)/128 + 1]uint16
)

// held contains the memory of a buffer of each class.
var held [classes]uint32

func init() {
	i := 0
	fits := func(n int) uint16 {
		for int(allocations[i]) < n {
			i++
		}
		return allocations[i]
	}
	for j := 1; j < len(fine); j++ {
		fine[j] = fits(8 * j)
	}
	for j := range coarse {
		coarse[j] = fits(near + 128*j)
	}
	for j := range held {
		held[j] = uint32(header + Allocated(classSize(j)))
	}
}

// Allocated returns the memory, in bytes, of a separate allocation of n bytes.
func Allocated(n int) int {
	switch {
	case n <= near:
		return int(fine[(n+7)/8])
	case n <= largest:
		return int(coarse[(n-near+127)/128])
	}
	return (n + page - 1) &^ (page - 1)
}
