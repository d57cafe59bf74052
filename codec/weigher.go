package codec

import "reflect"

// Weigher is implemented by [Values] that can tell what a value takes before it is decoded, as
// [CBOR], [JSON] and that of package classic do. A session asks it about what its peer has sent,
// and refuses what would become too much. With a codec that is no Weigher nothing is refused, and
// nothing but the bytes themselves is counted.
type Weigher interface {
	// Weigh estimates how many bytes of memory are held by what data becomes when it is decoded as
	// a t, besides that t itself, at the most while it is decoded, the stack for deep values
	// included. It is about as much as that or more, and it may end as soon as it exceeds most. It
	// allocates nothing that grows with data, and takes no longer than decoding. Of data that is
	// malformed it returns what it has seen until there, for Decode will find the same. A type that
	// decodes itself counts for as many bytes as it gets: what it makes of them is its own to
	// bound. Like Decode it does not panic.
	Weigh(data []byte, t reflect.Type, most int) (bytes int)
}
