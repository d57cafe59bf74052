package codec

import "reflect"

// Weigher is implemented by [Values] that can estimate the memory of a value before it is decoded,
// as [CBOR], [JSON] and that of package classic do. A session weighs the values of its peer, and
// rejects those that would take too much. With a codec that is no Weigher it rejects none, and
// counts only the encoded bytes.
type Weigher interface {
	// Weigh estimates the bytes of memory that data takes when it is decoded as a t, besides that t
	// itself, at the peak of the decoding, the stack for deep values included. The estimate is
	// approximately correct or larger, and Weigh may stop as soon as it exceeds most. It allocates
	// nothing that grows with data, and takes no longer than decoding. For malformed data it
	// returns the estimate up to the error, because Decode will find the same error. A type that
	// decodes itself counts for its encoded bytes: the type itself has to bound its memory. Like
	// Decode it does not panic.
	Weigh(data []byte, t reflect.Type, most int) (bytes int)
}
