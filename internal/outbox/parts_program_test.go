package outbox_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/priority"
)

// stream is a pipe on which numbered Blocks are sent.
type stream struct {
	flow    *outbox.Flow
	put     uint32          // Blocks
	next    uint32          // the number of the next Block to arrive
	expires map[uint32]bool // Blocks that may expire
	over    bool
}

// program is an Outbox with many streams, and the receiver of its frames. The receiver gets only
// batches that were taken and not lost.
type program struct {
	*box
	*receiver
	rnd     *rand.Rand
	streams []*stream // by the ids of their pipes
	keeps   bool
	arrived uint64 // countable frames
}

func newProgram(t *testing.T, seed uint64) *program {
	p := &program{box: newBox(t), receiver: newReceiver(t), rnd: rand.New(rand.NewPCG(seed, 7))}
	if p.keeps = seed%2 == 0; p.keeps {
		p.Keep(func() uint64 { return 0 }, 1<<20)
	} else if seed%4 == 1 {
		p.Lend()
	}
	p.message = p.arrives
	for id := range uint64(40) {
		f := outbox.AcceptedFlow(priority.Priority(id%3), id)
		p.streams = append(p.streams, &stream{flow: &f, expires: map[uint32]bool{}})
	}
	return p
}

// arrives checks that Blocks arrive in order and unchanged, and that only Blocks that may expire
// are missing, as counted by the next one.
func (p *program) arrives(frame []byte) {
	m, err := message.ParseBlock(frame)
	if err != nil {
		return
	}
	s := p.streams[m.Pipe]
	n := binary.BigEndian.Uint32(m.Payload)
	for range m.Meta.Skipped {
		require.True(p.receiver.t, s.expires[s.next], "Block %d of pipe %d is missing", s.next, m.Pipe)
		s.next++
	}
	require.Equal(p.receiver.t, s.next, n, "pipe %d", m.Pipe)
	require.Equal(p.receiver.t, len(m.Payload)-4, bytes.Count(m.Payload[4:], []byte{byte(n)}), "its bytes")
	s.next++
}

// putBlock puts a Block of any size.
func (p *program) putBlock() {
	s := p.stream()
	size := p.rnd.IntN(1 << (4 + p.rnd.IntN(16)))
	payload := append(binary.BigEndian.AppendUint32(nil, s.put), bytes.Repeat([]byte{byte(s.put)}, size)...)
	m := outbox.Message{Type: message.BlockType, Payload: payload, Held: uint32(len(payload)), Sender: new(asker)}
	if p.rnd.IntN(3) == 0 {
		m.Expires = time.Now().Add(time.Duration(p.rnd.IntN(20)) * time.Second)
		s.expires[s.put] = true
	}
	if p.rnd.IntN(4) == 0 {
		give(&m)
	}
	s.put++
	p.box.put(s.flow, m)
}

// stream returns one of the first running streams.
func (p *program) stream() *stream {
	n := p.rnd.IntN(6)
	for _, s := range p.streams {
		if !s.over {
			if n == 0 {
				return s
			}
			n--
		}
	}
	panic("all are over")
}

// takes sends a batch, which may be lost together with its Wire, wholly or in part.
func (p *program) takes() (more bool) {
	batch, _ := p.Take()
	if batch == nil {
		return false
	}
	whole := batch
	if s := p.Segments(); s != nil {
		whole = bytes.Join(s, nil)
	}
	if !p.keeps || p.rnd.IntN(5) > 0 {
		p.receives(whole)
		p.Written(batch)
	} else {
		p.cut(whole, batch)
	}
	if p.keeps && p.rnd.IntN(3) == 0 {
		require.True(p.receiver.t, p.Ack(p.arrived))
	}
	return true
}

// receives makes frames arrive.
func (p *program) receives(frames []byte) {
	p.arrived += countable(frames)
	p.reads(frames)
}

func countable(frames []byte) (n uint64) {
	for ; len(frames) > 0; frames = frames[4+binary.BigEndian.Uint32(frames):] {
		if message.Countable(frames[4 : 4+binary.BigEndian.Uint32(frames)]) {
			n++
		}
	}
	return n
}

// cut loses the Wire after some of the frames, and resumes over another one.
func (p *program) cut(frames, batch []byte) {
	at := 0
	for at < len(frames) && p.rnd.IntN(3) > 0 {
		at += 4 + int(binary.BigEndian.Uint32(frames[at:]))
	}
	p.receives(frames[:at])
	p.Halt()
	p.Written(batch)
	for range p.rnd.IntN(3) {
		p.any()
	}
	missing, err := p.Resume(p.arrived)
	require.NoError(p.receiver.t, err)
	for _, m := range missing {
		p.receives(m)
	}
	p.Resent()
}

// any takes a random step other than take.
func (p *program) any() {
	switch p.rnd.IntN(12) {
	case 0:
		s := p.stream()
		p.Cancel(s.flow, outbox.Ended)
		s.over = true
		p.box.put(s.flow, outbox.Message{Type: message.CloseType, Abort: codec.ErrCanceled})
	case 1:
		time.Sleep(time.Duration(p.rnd.IntN(5)) * time.Second) // of the bubble
	case 2:
		p.Open(outbox.Bound{Part: p.rnd.IntN(70 << 10)})
	case 3:
		p.Divide(p.rnd.IntN(70 << 10))
	default:
		p.putBlock()
	}
}

func (p *program) drains() {
	for p.takes() {
	}
}

// TestParts_RandomPrograms plays programs of random puts, cancels, expiries and lost Wires between
// frames.
func TestParts_RandomPrograms(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			p := newProgram(t, seed)
			p.Divide(64 << 10)
			for range 150 {
				p.any()
				for range p.rnd.IntN(3) {
					p.takes()
				}
			}
			p.drains()
			require.Zero(t, len(p.parts), "seed %d: nothing is unfinished", seed)
			for id, s := range p.streams {
				if s.over {
					continue
				}
				for ; s.next < s.put && s.expires[s.next]; s.next++ {
				}
				require.Equal(t, s.put, s.next, "seed %d: pipe %d", seed, id)
			}
			if p.keeps {
				require.True(t, p.Ack(p.arrived))
			}
			require.Zero(t, p.Waiting())
			require.Zero(t, p.Underway())
		})
	}
}
