package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
)

// durableCall identifies a durable call.
type durableCall struct { // fixed
	name     string // of its record
	function uint16
	digest   string // of the parameters
	codec    string // name of the session's codec
	again    bool   // it may run more than once
	caller   string // the caller whose share it counts for
}

// callOf returns a durableCall. The name of its record reveals neither the owner nor the key: for
// callers without a proven identity, the key is the only proof.
func (d *durableRegistry) callOf(owner string, key []byte, function uint16, params []byte) durableCall {
	named := binary.BigEndian.AppendUint64(nil, uint64(len(owner)))
	name := sha256.Sum256(append(append(named, owner...), key...))
	digest := sha256.Sum256(params)
	return durableCall{
		name: hex.EncodeToString(name[:]), function: function, digest: hex.EncodeToString(digest[:16]),
		again: slices.Contains(d.plan.Idempotent, function),
	}
}

// durableState is the state of a recorded call. A running call becomes answered or unkept when it
// ends, and lost when its lease expires. If it did not run after all, its record is removed. The
// run of a lost call may still answer it, as long as it was not run again. Answered and unkept are
// final.
type durableState string

const (
	durableRuns     durableState = "running"
	durableAnswered durableState = "answered"
	durableUnkept   durableState = "unkept" // it ran, and its answer is too large
	durableLost     durableState = "lost"   // its run gave no sign for a lease
)

// durableRecord is the record of a call. In the bucket it is a line of JSON, followed by the
// result, the detail of the abort, or padding.
type durableRecord struct {
	Version  int          `json:"v"`
	State    durableState `json:"state"`
	Node     string       `json:"node"` // the node that runs it, or has run it
	Instance string       `json:"instance"`
	Run      string       `json:"run"` // differs for each run of the call
	Function uint16       `json:"function"`
	Digest   string       `json:"digest"`
	Codec    string       `json:"codec,omitempty"` // empty: written by an older version
	Lease    int64        `json:"lease"`           // milliseconds
	Aborted  bool         `json:"aborted,omitempty"`
	Code     codec.Code   `json:"code,omitempty"`
	Message  string       `json:"message,omitempty"`

	body []byte
}

// durableVersion is the version of the records that this node writes and reads.
const durableVersion = 1

func (r *durableRecord) encode() ([]byte, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), r.body...), nil
}

// padding returns the bytes after a record without an answer that replaces a revision. All such
// records of a run have the same size, together with the header for the revision, so that one fits
// in the place of another, even in a full bucket.
func (r *durableRecord) padding(revision uint64) []byte {
	if r.State == durableAnswered {
		return nil
	}
	longest := len(durableRuns) + len("18446744073709551615")
	return bytes.Repeat([]byte{' '}, longest-len(r.State)-len(strconv.FormatUint(revision, 10)))
}

// decodeDurable returns a record, or the error of a call with an unreadable record.
func decodeDurable(b []byte) (*durableRecord, *asterisque.Abort) {
	head, body, _ := bytes.Cut(b, []byte{'\n'})
	r := &durableRecord{body: body}
	if kv.VersionOf(head) > durableVersion {
		return nil, errDurableNewer
	}
	known := []durableState{durableRuns, durableAnswered, durableUnkept, durableLost}
	if json.Unmarshal(head, r) != nil || r.Version != durableVersion || !slices.Contains(known, r.State) || r.Run == "" || r.Lease <= 0 {
		return nil, errDurableAlien
	}
	return r, nil
}

// with returns the record in another state, without an answer.
func (r *durableRecord) with(s durableState) *durableRecord {
	other := *r
	other.State, other.Aborted, other.Code, other.Message, other.body = s, false, 0, "", nil
	return &other
}

// answered returns the record with an answer.
func (r *durableRecord) answered(result []byte, a *asterisque.Abort) *durableRecord {
	other := r.with(durableAnswered)
	if other.body = result; a != nil {
		other.Aborted, other.Code, other.body = true, a.Code, a.Detail
		other.Message = a.Message[:min(len(a.Message), codec.MaxReason)]
	}
	return other
}

// give sets the answer of a repetition.
func (r *durableRecord) give(c *asterisque.Call) error {
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
func (r *durableRecord) lease() time.Duration {
	return time.Duration(min(r.Lease, longestLease.Milliseconds())) * time.Millisecond
}

// durableEntry is the entry of a call in the bucket.
type durableEntry struct {
	revision uint64 // of the last message, a deletion marker included; 0: none
	there    bool
	written  time.Time // by the clock of JetStream
	record   *durableRecord
	unread   *asterisque.Abort // the error if record cannot be read
	lapsed   bool              // the call runs, and its lease has expired
}

// isOf reports whether the entry belongs to a run.
func (e durableEntry) isOf(run string) bool { return e.record != nil && e.record.Run == run }

// isEnd reports whether the entry is the outcome of its run, or the answer that was written before.
func (e durableEntry) isEnd(end *durableRecord) bool {
	return e.there && (e.record.State == end.State || e.record.State == durableAnswered)
}

// isFree reports whether a claim of a call may replace the entry.
func (e durableEntry) isFree(call durableCall) bool {
	if !e.there {
		return true
	}
	return call.again && e.record != nil && e.isSame(call) && (e.lapsed || e.record.State == durableLost)
}

// isSame reports whether the entry has the same function and the same parameters, in the same
// codec: equal bytes in another codec are other parameters.
func (e durableEntry) isSame(call durableCall) bool {
	r := e.record
	return r.Function == call.function && r.Digest == call.digest && (r.Codec == "" || r.Codec == call.codec)
}

// verdict returns the answer to a repetition, or an error if there is none. It returns neither
// while the first call runs.
func (e durableEntry) verdict(call durableCall) (*durableRecord, error) {
	switch {
	case e.unread != nil:
		return nil, e.unread
	case !e.isSame(call):
		return nil, errDurableUsed
	case e.record.State == durableAnswered:
		return e.record, nil
	case e.record.State == durableUnkept:
		return nil, errDurableUnkept
	case e.record.State == durableLost:
		return nil, errDurableRan
	}
	return nil, nil
}
