package message

import "github.com/asterisque-go/asterisque/internal/cborhead"

// Block carries one piece of the stream that runs in one direction of a pipe, or ends that stream.
type Block struct {
	Pipe    uint64 // at most MaxPipe
	Payload []byte // nil is sent as empty, which is not the end
	End     bool   // the end of this direction; Payload is not sent
	Meta    Meta   // TTL, Loss and Skipped are sent, the other fields are not
}

// blockFields is the payload.
const blockFields = 1

// AppendTo appends the frame of m to dst and returns the longer slice. It copies Payload.
func (m *Block) AppendTo(dst []byte) []byte {
	dst = appendStart(dst, BlockType, blockFields, m.Pipe, &m.Meta)
	dst = m.appendFields(dst)
	return m.Meta.appendTo(dst, BlockType)
}

// AppendAround appends the frame of m without its payload of size bytes, and returns the longer
// slice and the position of the payload in it. It ignores Payload. End must not be set.
func (m *Block) AppendAround(dst []byte, size int) (around []byte, at int) {
	dst = appendStart(dst, BlockType, blockFields, m.Pipe, &m.Meta)
	dst = cborhead.AppendHead(dst, cborhead.Bytes, uint64(size))
	return m.Meta.appendTo(dst, BlockType), len(dst)
}

func (m *Block) appendFields(dst []byte) []byte {
	if m.End {
		return append(dst, cborhead.Null)
	}
	return cborhead.AppendBytes(dst, m.Payload)
}

// ParseBlock reads the frame of a Block. Payload of the result is a part of frame. The error is a
// *FrameError.
func ParseBlock(frame []byte) (Block, error) {
	r := cborhead.Reader{Data: frame}
	n := start(&r, BlockType, 2+blockFields, 3+blockFields)
	m := Block{Pipe: r.Uint("pipe id", MaxPipe)}
	if m.End = r.Null(); !m.End {
		m.Payload = r.Bytes("payload")
	}
	if n > 2+blockFields {
		readMeta(&r, BlockType, &m.Meta)
	}
	if err := end(&r); err != nil {
		return Block{}, err
	}
	return m, nil
}
