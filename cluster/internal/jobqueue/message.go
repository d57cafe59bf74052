package jobqueue

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/priority"
)

// keySize is the size in bytes of a posted call's key, which cannot be guessed.
const keySize = 16

// postedCall is a waiting call. Its message is a line of JSON, followed by the parameters.
type postedCall struct {
	Version  int               `json:"v"`
	Key      []byte            `json:"key"`
	Owner    string            `json:"owner,omitempty"` // the identity of the poster
	Name     string            `json:"name,omitempty"`  // of the poster's node, as ID
	ID       string            `json:"id"`
	Function uint16            `json:"function"`
	Codec    string            `json:"codec"`
	Urgency  priority.Priority `json:"urgency,omitempty"`
	Deadline int64             `json:"deadline"` // milliseconds since 1970

	params []byte
	at     time.Time // when it was posted; zero: on another node
}

const (
	postedVersion = 1
	mostPoster    = 255 // maximum bytes of each name of a poster
)

func (p *postedCall) encode() []byte {
	head, _ := json.Marshal(p) // strings, bytes and numbers can be encoded
	return append(append(head, '\n'), p.params...)
}

// deadline returns the time after which the call no longer begins.
func (p *postedCall) deadline() time.Time { return time.UnixMilli(p.Deadline) }

// errPostedNewer is the error of a message of a newer version, which other nodes may be able to
// read.
var errPostedNewer = errors.New("it was posted by a newer node")

// decodePosted returns the call of a message. Any client that may post may have written it.
func decodePosted(b []byte) (*postedCall, error) {
	head, params, _ := bytes.Cut(b, []byte{'\n'})
	if kv.VersionOf(head) > postedVersion {
		return nil, errPostedNewer
	}
	p := &postedCall{params: params}
	if err := json.Unmarshal(head, p); err != nil {
		return nil, err
	}
	if p.Version != postedVersion || len(p.Key) != keySize || p.Codec != Codec.Name() {
		return nil, errors.New("it is no posted call")
	}
	if max(len(p.Owner), len(p.Name), len(p.ID)) > mostPoster {
		return nil, errors.New("a name of its poster is too long")
	}
	return p, nil
}

// classOf returns the class of an urgency.
func classOf(p priority.Priority) int {
	switch {
	case p > 0:
		return 0
	case p < 0:
		return 2
	}
	return 1
}

// Poster is the node that has posted a call, by its own account.
type Poster struct {
	Identity string `json:"identity,omitempty"`
	Name     string `json:"name,omitempty"`
	ID       string `json:"id"`
}

// postedBy is the metadata key of a posted call for its Poster.
const postedBy = "asterisque.posted-by"

// PosterAt returns the poster of a call of a peer with metadata; false if it was not posted. Other
// peers can send the same metadata, but only the peer of posted calls is within the program.
func PosterAt(peer asterisque.Peer, m asterisque.Metadata) (p Poster, ok bool) {
	if peer.ID != peerID || peer.RemoteAddr == nil || peer.RemoteAddr.Network() != "mem" {
		return p, false
	}
	said := m.Text(postedBy)
	return p, said != "" && json.Unmarshal([]byte(said), &p) == nil
}

// metadata returns the metadata of a posted call.
func (p *postedCall) metadata() asterisque.Metadata {
	by, _ := json.Marshal(Poster{p.Owner, p.Name, p.ID}) // strings can be encoded
	return asterisque.Metadata{postedBy: string(by)}
}

// receiptMark is the prefix of a receipt: its version.
const receiptMark = "asterisque-receipt-1."

// mostReceipt is the maximum size of a receipt in bytes.
const mostReceipt = 1 << 10

// callReceipt is the content of a receipt.
type callReceipt struct {
	Name     string `json:"name"`
	Key      []byte `json:"key"`
	Sequence uint64 `json:"seq,omitempty"` // of the message; 0: not confirmed by JetStream
	Owner    string `json:"owner,omitempty"`
	Posted   int64  `json:"posted"`   // milliseconds since 1970, as Deadline
	Deadline int64  `json:"deadline"` // after it the call does not begin
}

func (r *callReceipt) encode() string {
	b, _ := json.Marshal(r) // strings, bytes and numbers can be encoded
	return receiptMark + base64.RawURLEncoding.EncodeToString(b)
}

// deadline returns the time after which the call does not begin.
func (r *callReceipt) deadline() time.Time { return time.UnixMilli(r.Deadline) }

// errNoReceipt is the error for an invalid Receipt.
var errNoReceipt = codec.ErrBadParams.Withf("this is no receipt of a posted call: pass the text that Post returned, the whole of it")

// parseReceipt returns the content of a receipt, or errNoReceipt.
func parseReceipt(r string) (*callReceipt, error) {
	text, ok := strings.CutPrefix(r, receiptMark)
	if !ok || len(r) > mostReceipt {
		return nil, errNoReceipt
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errNoReceipt
	}
	var p callReceipt
	if json.Unmarshal(b, &p) != nil || !kv.IsToken(p.Name) || len(p.Key) != keySize || p.Posted <= 0 || p.Deadline < p.Posted {
		return nil, errNoReceipt
	}
	return &p, nil
}
