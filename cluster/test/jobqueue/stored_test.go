package jobqueue_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// Names in NATS for the calls to orders.
const (
	queueStream    = "asterisque_main_queue_orders"
	queueSubject   = "asterisque.queue.main.orders." // with the class after it
	outcomesBucket = "asterisque_main_results_orders"
)

// consumers are the names of the JetStream consumers, by class.
var consumers = [...]string{"class0", "class1", "class2"}

// receipt is the content of a receipt.
type receipt struct {
	Name     string `json:"name"`
	Key      []byte `json:"key"`
	Sequence uint64 `json:"seq,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Posted   int64  `json:"posted"` // milliseconds since 1970, as Deadline
	Deadline int64  `json:"deadline"`
}

const receiptMark = "asterisque-receipt-1."

func decodeReceipt(t testing.TB, text string) *receipt {
	t.Helper()
	encoded, ok := strings.CutPrefix(text, receiptMark)
	require.True(t, ok, text)
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	require.NoError(t, err)
	r := new(receipt)
	require.NoError(t, json.Unmarshal(b, r))
	return r
}

func (r *receipt) encode() string {
	b, _ := json.Marshal(r) // strings, bytes and numbers can be encoded
	return receiptMark + base64.RawURLEncoding.EncodeToString(b)
}

// message returns the message of a waiting call.
func message(t testing.TB, c *member, r *receipt) *jetstream.RawStreamMsg {
	t.Helper()
	s, err := c.js.Stream(t.Context(), queueStream)
	require.NoError(t, err)
	m, err := s.GetMsg(t.Context(), r.Sequence)
	require.NoError(t, err)
	return m
}

// randomKey returns the key of a call that was never posted.
func randomKey() []byte {
	key := make([]byte, 16)
	rand.Read(key) // never fails
	return key
}

// outcome is the outcome of a call without an abort. In the bucket it is a line of JSON, followed
// by the result.
type outcome struct {
	Version  int    `json:"v"`
	State    string `json:"state"`
	Owner    string `json:"owner,omitempty"`
	Node     string `json:"node,omitempty"`
	Since    int64  `json:"since,omitempty"` // the start on an earlier node, as Deadline
	Deadline int64  `json:"deadline"`        // milliseconds since 1970
}

// encode returns the entry of an outcome without a result.
func (o *outcome) encode() []byte {
	b, _ := json.Marshal(o) // strings and numbers can be encoded
	return append(b, '\n')
}

// outcomes returns the bucket of the outcomes.
func outcomes(t testing.TB, c *member) jetstream.KeyValue {
	t.Helper()
	kv, err := c.js.KeyValue(t.Context(), outcomesBucket)
	require.NoError(t, err)
	return kv
}

// outcomeKey returns the key of a call's outcome in the bucket.
func outcomeKey(t testing.TB, receipt string) string {
	t.Helper()
	hash := sha256.Sum256(decodeReceipt(t, receipt).Key)
	return hex.EncodeToString(hash[:])
}

// outcomeOf returns the outcome of a call, and its entry in the bucket.
func outcomeOf(t testing.TB, c *member, receipt string) (*outcome, jetstream.KeyValueEntry) {
	t.Helper()
	e, err := outcomes(t, c).Get(t.Context(), outcomeKey(t, receipt))
	require.NoError(t, err)
	head, _, ok := strings.Cut(string(e.Value()), "\n")
	require.True(t, ok)
	o := new(outcome)
	require.NoError(t, json.Unmarshal([]byte(head), o))
	require.Equal(t, 1, o.Version)
	return o, e
}

// begins writes that a call without an outcome has begun at the node "lost". since is the start on
// an earlier node; 0: there was none.
func begins(t testing.TB, c *member, receipt string, since int64) {
	t.Helper()
	r := decodeReceipt(t, receipt)
	o := &outcome{Version: 1, State: "begun", Owner: r.Owner, Node: "lost", Since: since, Deadline: r.Deadline}
	_, err := outcomes(t, c).Create(t.Context(), outcomeKey(t, receipt), o.encode())
	require.NoError(t, err)
}

// takesOver writes that a call that has begun was delivered again, to the node "other". It returns
// the outcome, and the earlier entry.
func takesOver(t testing.TB, c *member, receipt string) (*outcome, jetstream.KeyValueEntry) {
	t.Helper()
	o, had := outcomeOf(t, c, receipt)
	require.Equal(t, "begun", o.State)
	o.Node, o.Since = "other", had.Created().UnixMilli()
	_, err := outcomes(t, c).Update(t.Context(), had.Key(), o.encode(), had.Revision())
	require.NoError(t, err)
	return o, had
}
