package message

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// vectorsFile holds the test vectors for every implementation of the protocol; spec/protocol.md
// explains its form.
const vectorsFile = "../../spec/vectors.json"

type vectors struct {
	Version int
	Valid   []validVector
	Invalid []struct {
		Name, Type, Reason string
		Hex                hexBytes
	}
}

// validVector is a frame and the message that it encodes.
type validVector struct {
	Name    string
	Hex     hexBytes
	Message vectorMessage
	Cost    *uint64
	Oneway  bool
	Written hexBytes
}

// vectorMessage is any message in the form of the vectors.
type vectorMessage struct {
	Type string

	Pipe     *uint64
	Function uint16
	Priority int8
	Params   hexBytes
	Payload  *hexBytes
	Meta     struct {
		TTL     uint32
		Loss    uint8
		Skipped uint64
		Trace   hexBytes
		Key     hexBytes
		Within  *uint64
		Window  *uint64
		Initial uint64

		Metadata hexBytes
	}

	Outcome string
	Result  hexBytes
	Code    int64
	Message string
	Detail  hexBytes

	Bytes *hexBytes
	Whole uint64

	N, Limit, Count uint64
	Extra           uint64 // of a Credit or a Sync
	Holds           uint64
	Sent, Total     uint64
	Last            *uint64

	Version    uint64
	Node       hexBytes
	Session    hexBytes
	Features   uint64
	MaxMessage uint64 `json:"max_message"`
	Early      uint64
	Opens      uint64
	Ping       time.Duration
	Timeout    time.Duration
	Codecs     []string
	Credential hexBytes
	Secret     hexBytes
	Received   uint64

	Overhead    uint64
	NestedRoom  uint64 `json:"nested_room"`
	NestedCalls uint64 `json:"nested_calls"`
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func readVectors(t testing.TB) vectors {
	data, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(data, &v))
	require.Equal(t, Version, v.Version)
	return v
}

// appender is the interface of all messages.
type appender interface {
	AppendTo(dst []byte) []byte
}

// parseAs parses a frame with the parser for a name in the vectors. Each name but open, block,
// close and part is a Control.
func parseAs(name string, frame []byte) (appender, error) {
	switch name {
	case "open":
		m, err := ParseOpen(frame)
		return &m, err
	case "block":
		m, err := ParseBlock(frame)
		return &m, err
	case "close":
		m, err := ParseClose(frame)
		return &m, err
	case "part":
		m, err := ParsePart(frame)
		return &m, err
	default:
		return ParseControl(frame)
	}
}

// goMessage returns m as a message of this package. Its bytes are nil only where a parser leaves
// them nil.
func (m *vectorMessage) goMessage() appender {
	meta := Meta{
		TTL: m.Meta.TTL, Loss: m.Meta.Loss, Skipped: m.Meta.Skipped,
		Trace: m.Meta.Trace, Key: m.Meta.Key, Metadata: m.Meta.Metadata,
	}
	if m.Meta.Within != nil {
		meta.Nested, meta.Within = true, *m.Meta.Within
	}
	if m.Meta.Window != nil {
		meta.Stream, meta.Window, meta.Initial = true, *m.Meta.Window, m.Meta.Initial
	}
	switch m.Type {
	case "open":
		return &Open{Pipe: *m.Pipe, Function: m.Function, Priority: m.Priority, Params: m.Params, Meta: meta}
	case "block":
		if m.Payload == nil {
			return &Block{Pipe: *m.Pipe, End: true, Meta: meta}
		}
		return &Block{Pipe: *m.Pipe, Payload: *m.Payload, Meta: meta}
	case "close":
		if m.Outcome == "result" {
			return &Close{Pipe: *m.Pipe, Result: m.Result}
		}
		a := &codec.Abort{Code: codec.Code(m.Code), Message: m.Message, Detail: m.Detail, Remote: true}
		if m.Outcome == "refused" {
			a.Ran = codec.Refused
		}
		return &Close{Pipe: *m.Pipe, Abort: a}
	case "part":
		if m.Bytes == nil {
			return &Part{Pipe: *m.Pipe, GivenUp: true}
		}
		return &Part{Pipe: *m.Pipe, Bytes: *m.Bytes, Whole: m.Whole}
	default:
		return m.goControl()
	}
}

func (m *vectorMessage) goControl() Control {
	switch m.Type {
	case "sync":
		return Sync{
			Version: m.Version, Node: m.Node, Session: m.Session, Features: m.Features, MaxMessage: m.MaxMessage,
			Window: m.Early, Opens: m.Opens, Ping: m.Ping * time.Millisecond, Timeout: m.Timeout * time.Millisecond,
			Codecs: m.Codecs, Credential: m.Credential, Secret: m.Secret, Received: m.Received,
			Overhead: m.Overhead, NestedRoom: m.NestedRoom, NestedCalls: m.NestedCalls, Extra: m.Extra,
		}
	case "ping":
		return Ping{N: m.N, Holds: m.Holds}
	case "pong":
		return Pong{N: m.N}
	case "credit":
		if m.Pipe == nil {
			return Credit{Opens: true, Limit: m.Limit, Extra: m.Extra}
		}
		return Credit{Pipe: *m.Pipe, Limit: m.Limit}
	case "ack":
		return Ack{Count: m.Count}
	case "drain":
		if m.Last == nil {
			return Drain{None: true}
		}
		return Drain{Last: *m.Last}
	case "session_close":
		return SessionClose{Code: codec.Code(m.Code), Message: m.Message}
	case "stop":
		return Stop{Pipe: *m.Pipe}
	case "skip":
		return Skip{Pipe: *m.Pipe, Sent: m.Sent}
	default:
		return UnknownControl{Code: uint64(m.Code)}
	}
}

// Valid vectors parse to their message.
func TestVectorsValid_Parse(t *testing.T) {
	list := readVectors(t).Valid
	require.GreaterOrEqual(t, len(list), 60)
	for _, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			m, err := parseAs(v.Message.Type, v.Hex)
			require.NoError(t, err)
			v.Message.Message = truncate.Text(v.Message.Message, codec.MaxReason)
			requireSame(t, v.Message.goMessage(), m)
		})
	}
}

// wanted returns the frame that an encoder must produce.
func (v *validVector) wanted() string {
	if v.Oneway {
		return hex.EncodeToString(v.Written)
	}
	return hex.EncodeToString(v.Hex)
}

// Messages are written as in the vectors.
func TestVectorsValid_Written(t *testing.T) {
	for _, v := range readVectors(t).Valid {
		t.Run(v.Name, func(t *testing.T) {
			require.Equal(t, v.Oneway, v.Written != nil)
			require.NotEqual(t, v.Hex, v.Written, "it would not have to be oneway")
			require.Equal(t, v.wanted(), hex.EncodeToString(v.Message.goMessage().AppendTo(nil)))
			m, err := parseAs(v.Message.Type, v.Hex)
			require.NoError(t, err)
			require.Equal(t, v.wanted(), hex.EncodeToString(m.AppendTo(nil)), "what was read, written again")
		})
	}
}

// Another encoder writes the same bytes for the messages of the vectors.
func TestVectorsValid_OtherEncoder(t *testing.T) {
	for _, v := range readVectors(t).Valid {
		t.Run(v.Name, func(t *testing.T) {
			v.Message.Message = truncate.Text(v.Message.Message, codec.MaxReason)
			require.Equal(t, v.wanted(), hex.EncodeToString(canonical(t, v.Message.goMessage())))
		})
	}
}

// Invalid vectors are refused.
func TestVectorsInvalid_Refused(t *testing.T) {
	list := readVectors(t).Invalid
	require.GreaterOrEqual(t, len(list), 60)
	for _, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			_, err := parseAs(v.Type, v.Hex)
			require.Error(t, err, v.Reason)
		})
	}
}

// The error of a refusal names the fault.
func TestFrameError_Reason(t *testing.T) {
	for _, v := range readVectors(t).Invalid {
		_, err := parseAs(v.Type, v.Hex)
		require.ErrorContains(t, err, v.Reason, v.Name)
		require.ErrorIs(t, err, codec.ErrProtocol)
		var fe *FrameError
		require.ErrorAs(t, err, &fe)
		require.LessOrEqual(t, fe.Offset, len(v.Hex))
	}
}

// The costs in the vectors assume an overhead of 512 and an early credit of 4096.
func TestVectors_Cost(t *testing.T) {
	checked := 0
	for _, v := range readVectors(t).Valid {
		if v.Cost == nil {
			continue
		}
		m, err := parseAs(v.Message.Type, v.Hex)
		require.NoError(t, err, v.Name)
		cost := func(m appender) uint64 {
			if open, ok := m.(*Open); ok {
				return open.Cost(512, 4096)
			}
			return m.(*Block).Cost(512)
		}
		require.Equal(t, *v.Cost, cost(m), v.Name)
		if !v.Oneway {
			require.Equal(t, *v.Cost, cost(v.Message.goMessage()), "%s, before it is sent", v.Name)
		}
		checked++
	}
	require.GreaterOrEqual(t, checked, 10)
}

// Every truncated frame is refused.
func TestParse_CutFrame(t *testing.T) {
	for _, v := range readVectors(t).Valid {
		for n := range v.Hex {
			_, err := parseAs(v.Message.Type, v.Hex[:n])
			require.Error(t, err, "%s, first %d bytes", v.Name, n)
		}
	}
}
