package carrier_test

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
)

// pipes is a session that only receives messages.
type pipes struct {
	*rig
	opened map[uint64]bool // false: it is over
	got    []string
}

func (p *pipes) receive(t message.Type, frame []byte) error {
	switch t {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		if err != nil {
			return err
		}
		p.opened[m.Pipe] = true
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		if err != nil {
			return err
		}
		if p.HasPart(m.Pipe) {
			return codec.ErrProtocol
		}
	case message.CloseType:
		m, err := message.ParseClose(frame)
		if err != nil {
			return err
		}
		p.opened[m.Pipe] = false
		p.Forget(m.Pipe)
	default:
		return nil
	}
	p.got = append(p.got, hex.EncodeToString(frame))
	return nil
}

func (p *pipes) stray(pipe uint64) error {
	if open, known := p.opened[pipe]; open || !known {
		return codec.ErrProtocol
	}
	return nil
}

func TestParts_Vectors(t *testing.T) {
	data, err := os.ReadFile("../../spec/vectors.json")
	require.NoError(t, err)
	var file struct {
		Scenarios []struct {
			Name             string
			Frames, Messages []string
			Refused          bool
			MaxMessage       int      `json:"max_message"`
			Opened           []uint64 // on the receiving side
		}
	}
	require.NoError(t, json.Unmarshal(data, &file))
	require.GreaterOrEqual(t, len(file.Scenarios), 15)
	for _, s := range file.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			p := &pipes{rig: newRig(t, func(cfg *carrier.Config) { cfg.Largest = cmp.Or(s.MaxMessage, 4096) }), opened: map[uint64]bool{}}
			for _, pipe := range s.Opened {
				p.opened[pipe] = true
			}
			done := make(chan *codec.Abort, 2)
			p.up.receive = func(kind message.Type, frame []byte) error {
				if kind == message.ControlType {
					done <- nil
				}
				return p.receive(kind, frame)
			}
			p.up.stray = p.stray
			p.up.ended = func(cause *codec.Abort) { done <- cause }
			p.run()
			for _, f := range s.Frames {
				frame, err := hex.DecodeString(f)
				require.NoError(t, err)
				p.wire.in <- frame
			}
			p.wire.says(message.Ping{})
			cause := <-done
			require.Equal(t, s.Refused, cause != nil)
			require.Equal(t, s.Messages, append([]string{}, p.got...))
			if s.Refused {
				require.Equal(t, codec.Protocol, cause.Code)
			}
		})
	}
}
