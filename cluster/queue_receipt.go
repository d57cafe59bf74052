package cluster

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
)

// Receipt is the result of [Post] for a waiting call. It is text to be stored as long as the
// outcome is needed: with it, any program of the same identity, also after a restart, can get the
// outcome ([Cluster.Result]) or withdraw the call ([Cluster.Withdraw]). It is also a secret: a
// client that has it and may read the outcomes in NATS can do both. All nodes without
// Config.Identity and Config.Name share one identity.
type Receipt string

// receiptMark is the prefix of a Receipt: its version.
const receiptMark = "asterisque-receipt-1."

// mostReceipt is the maximum size of a Receipt in bytes.
const mostReceipt = 1 << 10

// callReceipt is the content of a Receipt.
type callReceipt struct {
	Name     string `json:"name"`
	Key      []byte `json:"key"`
	Sequence uint64 `json:"seq,omitempty"` // of the message; 0: not confirmed by JetStream
	Owner    string `json:"owner,omitempty"`
	Posted   int64  `json:"posted"`   // milliseconds since 1970, as Deadline
	Deadline int64  `json:"deadline"` // after it the call does not begin
}

func (r *callReceipt) encode() Receipt {
	b, _ := json.Marshal(r) // strings, bytes and numbers can be encoded
	return Receipt(receiptMark + base64.RawURLEncoding.EncodeToString(b))
}

// deadline returns the time after which the call does not begin.
func (r *callReceipt) deadline() time.Time { return time.UnixMilli(r.Deadline) }

// errNoReceipt is the error for an invalid Receipt.
var errNoReceipt = codec.ErrBadParams.Withf("this is no receipt of a posted call: pass the text that Post returned, the whole of it")

// parse returns the content of a Receipt, or errNoReceipt.
func (r Receipt) parse() (*callReceipt, error) {
	text, ok := strings.CutPrefix(string(r), receiptMark)
	if !ok || len(r) > mostReceipt {
		return nil, errNoReceipt
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errNoReceipt
	}
	var p callReceipt
	if json.Unmarshal(b, &p) != nil || !kv.IsToken(p.Name) || len(p.Key) != queueKey || p.Posted <= 0 || p.Deadline < p.Posted {
		return nil, errNoReceipt
	}
	return &p, nil
}
