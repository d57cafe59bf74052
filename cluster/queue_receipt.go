package cluster

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// Receipt is what [Post] gives for a call that waits. It is text to be written down, as long as the
// outcome matters: by it another program of the same identity, or the same one after a restart,
// asks for the outcome ([Cluster.Result]) or takes the call back ([Cluster.Withdraw]). It is a
// secret as well: who may read the outcomes in NATS and has it can do both. All nodes without
// Config.Identity and Config.Name are of one identity.
type Receipt string

// receiptMark is what a Receipt begins with: its version.
const receiptMark = "asterisque-receipt-1."

// mostReceipt is how many bytes a Receipt may have.
const mostReceipt = 1 << 10

// receipt is what a Receipt says.
type receipt struct {
	Name     string `json:"name"`
	Key      []byte `json:"key"`
	Sequence uint64 `json:"seq,omitempty"` // of the message; 0: JetStream has not told
	Owner    string `json:"owner,omitempty"`
	Posted   int64  `json:"posted"`   // these are milliseconds since 1970
	Deadline int64  `json:"deadline"` // from when on it does not begin
}

func (r *receipt) encode() Receipt {
	b, _ := json.Marshal(r) // strings, bytes and numbers can be encoded
	return Receipt(receiptMark + base64.RawURLEncoding.EncodeToString(b))
}

// deadline returns from when on the call does not begin.
func (r *receipt) deadline() time.Time { return time.UnixMilli(r.Deadline) }

// errNoReceipt is for a Receipt that none is.
var errNoReceipt = codec.ErrBadParams.Withf("this is no receipt of a posted call: pass the text that Post returned, the whole of it")

// parse returns what a Receipt says, or errNoReceipt.
func (r Receipt) parse() (*receipt, error) {
	text, ok := strings.CutPrefix(string(r), receiptMark)
	if !ok || len(r) > mostReceipt {
		return nil, errNoReceipt
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errNoReceipt
	}
	var p receipt
	if json.Unmarshal(b, &p) != nil || !token.MatchString(p.Name) || len(p.Key) != queueKey || p.Posted <= 0 || p.Deadline < p.Posted {
		return nil, errNoReceipt
	}
	return &p, nil
}
