package callstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
)

// call identifies a durable call.
type call struct { // fixed
	name     string // of its record
	function uint16
	digest   string // of the parameters
	codec    string // name of the session's codec
	again    bool   // it may run more than once
	caller   string // the caller whose share it counts for
}

// callOf returns a call. The name of its record reveals neither the owner nor the key: for
// callers without a proven identity, the key is the only proof.
func (d *Registry) callOf(owner string, key []byte, function uint16, params []byte) call {
	named := binary.BigEndian.AppendUint64(nil, uint64(len(owner)))
	name := sha256.Sum256(append(append(named, owner...), key...))
	digest := sha256.Sum256(params)
	return call{
		name: hex.EncodeToString(name[:]), function: function, digest: hex.EncodeToString(digest[:16]),
		again: slices.Contains(d.plan.Idempotent, function),
	}
}

// state is the state of a recorded call. A running call becomes answered or unkept when it
// ends, and lost when its lease expires. If it did not run after all, its record is removed. The
// run of a lost call may still answer it, as long as it was not run again. Answered and unkept are
// final.
type state string

const (
	stateRuns     state = "running"
	stateAnswered state = "answered"
	stateUnkept   state = "unkept" // it ran, and its answer is too large
	stateLost     state = "lost"   // its run gave no sign for a lease
)

// record is the record of a call. In the bucket it is a line of JSON, followed by the
// result, the detail of the abort, or padding.
type record struct {
	Version  int        `json:"v"`
	State    state      `json:"state"`
	Node     string     `json:"node"` // the node that runs it, or has run it
	Instance string     `json:"instance"`
	Run      string     `json:"run"` // differs for each run of the call
	Function uint16     `json:"function"`
	Digest   string     `json:"digest"`
	Codec    string     `json:"codec,omitempty"` // empty: written by an older version
	Lease    int64      `json:"lease"`           // milliseconds
	Aborted  bool       `json:"aborted,omitempty"`
	Code     codec.Code `json:"code,omitempty"`
	Message  string     `json:"message,omitempty"`

	body []byte
}

// recordVersion is the version of the records that this node writes and reads.
const recordVersion = 1

func (r *record) encode() ([]byte, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), r.body...), nil
}

// padding returns the bytes after a record without an answer that replaces a revision. All such
// records of a run have the same size, together with the header for the revision, so that one fits
// in the place of another, even in a full bucket.
func (r *record) padding(revision uint64) []byte {
	if r.State == stateAnswered {
		return nil
	}
	longest := len(stateRuns) + len("18446744073709551615")
	return bytes.Repeat([]byte{' '}, longest-len(r.State)-len(strconv.FormatUint(revision, 10)))
}

// decode returns a record, or the error of a call with an unreadable record.
func decode(b []byte) (*record, *asterisque.Abort) {
	head, body, _ := bytes.Cut(b, []byte{'\n'})
	r := &record{body: body}
	if kv.VersionOf(head) > recordVersion {
		return nil, errDurableNewer
	}
	known := []state{stateRuns, stateAnswered, stateUnkept, stateLost}
	if json.Unmarshal(head, r) != nil || r.Version != recordVersion || !slices.Contains(known, r.State) || r.Run == "" || r.Lease <= 0 {
		return nil, errDurableAlien
	}
	return r, nil
}

// with returns the record in another state, without an answer.
func (r *record) with(s state) *record {
	other := *r
	other.State, other.Aborted, other.Code, other.Message, other.body = s, false, 0, "", nil
	return &other
}

// answered returns the record with an answer.
func (r *record) answered(result []byte, a *asterisque.Abort) *record {
	other := r.with(stateAnswered)
	if other.body = result; a != nil {
		other.Aborted, other.Code, other.body = true, a.Code, a.Detail
		other.Message = a.Message[:min(len(a.Message), codec.MaxReason)]
	}
	return other
}

// give sets the answer of a repetition.
func (r *record) give(c *asterisque.Call) error {
	if !r.Aborted {
		c.SetRawResult(r.body)
		return nil
	}
	a := &asterisque.Abort{Code: r.Code, Message: r.Message}
	if len(r.body) > 0 {
		a.Detail = r.body
	}
	return a
}

// lease returns the lease of a running call, bounded because any client may have written the
// record.
func (r *record) lease() time.Duration {
	return time.Duration(min(r.Lease, LongestLease.Milliseconds())) * time.Millisecond
}

// entry is the entry of a call in the bucket.
type entry struct {
	revision uint64 // of the last message, a deletion marker included; 0: none
	there    bool
	written  time.Time // by the clock of JetStream
	record   *record
	unread   *asterisque.Abort // the error if record cannot be read
	lapsed   bool              // the call runs, and its lease has expired
}

// isOf reports whether the entry belongs to a run.
func (e entry) isOf(run string) bool { return e.record != nil && e.record.Run == run }

// isEnd reports whether the entry is the outcome of its run, or the answer that was written before.
func (e entry) isEnd(end *record) bool {
	return e.there && (e.record.State == end.State || e.record.State == stateAnswered)
}

// isFree reports whether a claim of a call may replace the entry.
func (e entry) isFree(call call) bool {
	if !e.there {
		return true
	}
	return call.again && e.record != nil && e.isSame(call) && (e.lapsed || e.record.State == stateLost)
}

// isSame reports whether the entry has the same function and the same parameters, in the same
// codec: equal bytes in another codec are other parameters.
func (e entry) isSame(call call) bool {
	r := e.record
	return r.Function == call.function && r.Digest == call.digest && (r.Codec == "" || r.Codec == call.codec)
}

// verdict returns the answer to a repetition, or an error if there is none. It returns neither
// while the first call runs.
func (e entry) verdict(call call) (*record, error) {
	switch {
	case e.unread != nil:
		return nil, e.unread
	case !e.isSame(call):
		return nil, errDurableUsed
	case e.record.State == stateAnswered:
		return e.record, nil
	case e.record.State == stateUnkept:
		return nil, errDurableUnkept
	case e.record.State == stateLost:
		return nil, errDurableRan
	}
	return nil, nil
}

// store is the bucket of the durable calls. Each method is one request.
type store struct{ *kv.Store } // fixed

func newStore(nc *nats.Conn, bucket jetstream.KeyValue) (*store, error) {
	s, err := kv.NewStore(nc, bucket)
	if err != nil {
		return nil, err
	}
	return &store{s}, nil
}

// read returns the entry of a call, from the leader of the stream: a server that lags behind would
// show a call as new that has run.
func (s *store) read(ctx context.Context, name string) (e entry, err error) {
	m, err := s.Store.Read(ctx, name)
	if err != nil || !m.Exists {
		return entry{revision: m.Revision, written: m.Written}, err // a deleted call did not run
	}
	e = entry{revision: m.Revision, written: m.Written, there: true}
	e.record, e.unread = decode(m.Value)
	return e, nil
}

// write replaces the entry with the revision, 0 for none, by a record, and returns the new
// revision.
func (s *store) write(ctx context.Context, name string, r *record, revision uint64) (uint64, error) {
	value, err := r.encode()
	if err != nil {
		return 0, err
	}
	return s.Store.Write(ctx, name, append(value, r.padding(revision)...), revision)
}
