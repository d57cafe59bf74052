package message

import (
	"math"

	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// Limits of the fields of a Meta.
const (
	MaxTTL   = math.MaxInt32 // milliseconds, almost 25 days
	MaxLoss  = 127           // 100 %
	MaxTrace = 512           // bytes
	MaxKey   = 64            // bytes
)

// Meta has the optional fields of an Open or a Block. A zero field is not sent.
//
// TTL, Loss and Skipped beyond their limit are sent as that limit. A longer Trace or Key is sent
// unchanged, and refused by the peer as a violation of the protocol: check the length of one that
// comes from a user.
type Meta struct {
	// milliseconds left for a useful delivery, 1..MaxTTL; 0: no end. Open and Block
	TTL  uint32
	Loss uint8 // loss rate, 0..MaxLoss. Block only
	// the handler of another call of this session, namely Within, makes the call. Open only
	Nested  bool
	Stream  bool   // the call has Blocks; without it there are none, in either direction. Open only
	Skipped uint64 // how many Blocks are missing before this one, at most 2^53-1. Block only
	Trace   []byte // trace context, at most MaxTrace bytes. Open only
	Key     []byte // idempotency key, at most MaxKey bytes. Open only
	// the result of AppendMetadata; ParseOpen does not check it: see CheckMetadata. Open only
	Metadata []byte
	// pipe id of a call that the receiver of this message made. Not sent unless Nested
	Within uint64
	// the Blocks of the callee may cost this much before a Credit; 0 too is sent. Not sent unless
	// Stream
	Window uint64
	// extra credit that the Open takes for the Blocks of the caller, see [Sync].Extra. Not sent
	// unless Stream
	Initial uint64

	// Strings is the number of bytes in the byte and text strings that are direct values of the
	// map, those of unknown keys included: they count for the cost. Strings inside arrays, maps and
	// tags are free. Only ParseOpen sets it, and it is not sent.
	Strings int
}

// IsZero reports whether m has no field to send.
func (m *Meta) IsZero() bool {
	return !m.on(OpenType) && !m.on(BlockType)
}

// Keys of a Meta as a map in a frame.
const (
	ttlKey = iota + 1
	lossKey
	skippedKey
	traceKey
	keyKey
	withinKey
	windowMetaKey
	metadataKey
	initialKey
)

// longestMetadata is the number of bytes that fit into a frame: metadata above its own limit is
// reported to the call.
const longestMetadata = 65 << 10

// maxMetaEntries bounds a received Meta, unknown keys included.
const maxMetaEntries = 16

// on reports whether m has a field to send in a message of type t.
func (m *Meta) on(t Type) bool {
	switch t {
	case OpenType:
		return m.TTL != 0 || len(m.Trace) != 0 || len(m.Key) != 0 || len(m.Metadata) != 0 || m.Nested || m.Stream
	case BlockType:
		return m.TTL != 0 || m.Loss != 0 || m.Skipped != 0
	}
	return false
}

// appendTo appends the map of the fields of m in a message of type t, or nothing if there are none.
func (m *Meta) appendTo(dst []byte, t Type) []byte {
	if !m.on(t) {
		return dst
	}
	at := len(dst)
	dst = append(dst, cborhead.Map)
	dst = appendEntry(dst, at, ttlKey, min(uint64(m.TTL), MaxTTL))
	if t == BlockType {
		dst = appendEntry(dst, at, lossKey, min(uint64(m.Loss), MaxLoss))
		return appendEntry(dst, at, skippedKey, m.Skipped)
	}
	dst = appendBytesEntry(dst, at, traceKey, m.Trace)
	dst = appendBytesEntry(dst, at, keyKey, m.Key)
	if m.Nested {
		dst[at]++
		dst = cborhead.AppendNumber(append(dst, withinKey), m.Within)
	}
	if m.Stream {
		dst[at]++
		dst = cborhead.AppendNumber(append(dst, windowMetaKey), m.Window)
	}
	dst = appendBytesEntry(dst, at, metadataKey, m.Metadata)
	if !m.Stream {
		return dst
	}
	return appendEntry(dst, at, initialKey, m.Initial)
}

// readMeta reads the map of a Meta in a message of type t. Keys without a meaning there are
// skipped.
func readMeta(r *cborhead.Reader, t Type, m *Meta) {
	var key uint64
	var strings int
	for i := range r.Map("meta", maxMetaEntries) {
		key = r.Key(i, key)
		switch {
		case key == ttlKey:
			m.TTL = uint32(r.UintFrom("TTL", 1, MaxTTL))
		case key == lossKey && t == BlockType:
			m.Loss = uint8(r.Uint("loss rate", MaxLoss))
		case key == skippedKey && t == BlockType:
			m.Skipped = r.Uint("skipped count", MaxPipe)
		case key == traceKey && t == OpenType:
			m.Trace = r.BytesOf("trace context", 1, MaxTrace)
			strings += len(m.Trace)
		case key == keyKey && t == OpenType:
			m.Key = r.BytesOf("idempotency key", 1, MaxKey)
			strings += len(m.Key)
		case key == withinKey && t == OpenType:
			m.Within, m.Nested = r.Uint("enclosing pipe id", MaxPipe), true
		case key == windowMetaKey && t == OpenType:
			m.Window, m.Stream = r.Uint("window", MaxPipe), true
		case key == metadataKey && t == OpenType:
			m.Metadata = r.BytesOf("metadata", 1, longestMetadata)
			strings += len(m.Metadata)
		case key == initialKey && t == OpenType:
			m.Initial = r.Uint("initial credit", MaxPipe)
		default:
			strings += r.Skip()
		}
		if r.Err != nil {
			return
		}
	}
	if t == OpenType {
		m.Strings = strings
	}
	if !m.Stream {
		m.Initial = 0 // without Blocks it means nothing
	}
}
