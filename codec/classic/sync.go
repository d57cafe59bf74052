package classic

import (
	"encoding/binary"
	"time"
)

// syncSize is the number of bytes of a Sync.
const syncSize = 50

// Sync is the handshake, the data of a Control: the connecting side sends one first, with a zero
// Session, and the accepting side answers with one.
type Sync struct {
	Version uint16 // 1 is sent; the original ignores it
	Node    UUID
	Session UUID
	Time    time.Time // to the millisecond
	Ping    int32     // seconds between pings; the original sends none
	Timeout int32     // seconds until a session is given up; the original ignores it
}

// AppendTo appends the Control that carries s, by codec c, to dst and returns the longer slice.
func (s *Sync) AppendTo(dst []byte, c Codec) []byte {
	b := binary.BigEndian
	dst = c.form().appendLength(append(dst, controlTag, SyncCode), syncSize)
	dst = b.AppendUint16(dst, s.Version)
	dst = append(append(dst, s.Node[:]...), s.Session[:]...)
	dst = b.AppendUint64(dst, uint64(s.Time.UnixMilli()))
	return b.AppendUint32(b.AppendUint32(dst, uint32(s.Ping)), uint32(s.Timeout))
}

// ParseSync reads the data of a Control with SyncCode, which is the same in both codecs. Bytes
// behind the known fields are ignored. The error is a *FormatError.
func ParseSync(data []byte) (Sync, error) {
	if len(data) < syncSize {
		return Sync{}, malformed(len(data), "a SyncConfig has %d bytes, this one %d", syncSize, len(data))
	}
	b := binary.BigEndian
	return Sync{
		Version: b.Uint16(data),
		Node:    UUID(data[2:18]),
		Session: UUID(data[18:34]),
		Time:    time.UnixMilli(int64(b.Uint64(data[34:]))).UTC(),
		Ping:    int32(b.Uint32(data[42:])),
		Timeout: int32(b.Uint32(data[46:])),
	}, nil
}
