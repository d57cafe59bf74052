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
	"github.com/asterisque-go/asterisque/codec"
)

// durableCall is what tells one durable call from others.
type durableCall struct { // fixed
	name     string // of its record
	function uint16
	digest   string // of the parameters
	codec    string // of the session, by its name
	again    bool   // it may run more than once
	caller   string // whose share it is of
}

// callOf returns a call. The name says neither whose it is, nor the key, which for those who have
// proved nothing is the only proof.
func (d *durables) callOf(owner string, key []byte, function uint16, params []byte) durableCall {
	named := binary.BigEndian.AppendUint64(nil, uint64(len(owner)))
	name := sha256.Sum256(append(append(named, owner...), key...))
	digest := sha256.Sum256(params)
	return durableCall{
		name: hex.EncodeToString(name[:]), function: function, digest: hex.EncodeToString(digest[:16]),
		again: slices.Contains(d.plan.Idempotent, function),
	}
}

// durableState says what became of a call. One that runs is answered, or unkept, when it ends; is
// lost when its lease is over; and has no record any more if it did not run after all. What is lost
// may be answered yet by its run, as long as nobody runs it again. All else stays.
type durableState string

const (
	durableRuns     durableState = "running"
	durableAnswered durableState = "answered"
	durableUnkept   durableState = "unkept" // it ran, and its answer does not fit
	durableLost     durableState = "lost"   // nobody has heard of its run for a lease
)

// durableRecord is what is remembered of a call. In the bucket it is a line of JSON, and after it
// the result, or the detail of the abort, or padding.
type durableRecord struct {
	Version  int          `json:"v"`
	State    durableState `json:"state"`
	Node     string       `json:"node"` // that runs it, or has
	Instance string       `json:"instance"`
	Run      string       `json:"run"` // another one for each time that it is run
	Function uint16       `json:"function"`
	Digest   string       `json:"digest"`
	Codec    string       `json:"codec,omitempty"` // empty: of a node that does not write it yet
	Lease    int64        `json:"lease"`           // milliseconds
	Aborted  bool         `json:"aborted,omitempty"`
	Code     codec.Code   `json:"code,omitempty"`
	Message  string       `json:"message,omitempty"`

	body []byte
}

// durableVersion is that of the records which this node writes, and reads.
const durableVersion = 1

func (r *durableRecord) encode() ([]byte, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), r.body...), nil
}

// padding follows a record without an answer, which is written in the place of a revision. All such
// records of a run are of one size, with the header that says the revision, so that one has room in
// the place of another, however full the bucket is.
func (r *durableRecord) padding(revision uint64) []byte {
	if r.State == durableAnswered {
		return nil
	}
	longest := len(durableRuns) + len("18446744073709551615")
	return bytes.Repeat([]byte{' '}, longest-len(r.State)-len(strconv.FormatUint(revision, 10)))
}

// decodeDurable returns a record, or why nobody can tell what became of the call.
func decodeDurable(b []byte) (*durableRecord, *asterisque.Abort) {
	head, body, _ := bytes.Cut(b, []byte{'\n'})
	r := &durableRecord{body: body}
	if versionOf(head) > durableVersion {
		return nil, errDurableNewer
	}
	known := []durableState{durableRuns, durableAnswered, durableUnkept, durableLost}
	if json.Unmarshal(head, r) != nil || r.Version != durableVersion || !slices.Contains(known, r.State) || r.Run == "" || r.Lease <= 0 {
		return nil, errDurableAlien
	}
	return r, nil
}

// versionOf returns what a line of JSON says as its version, 0 if it says none.
func versionOf(head []byte) int {
	var version struct {
		V int `json:"v"`
	}
	if json.Unmarshal(head, &version) != nil {
		return 0
	}
	return version.V
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

// give lets a repetition have the answer.
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

// lease returns for how long the record of a call that runs counts. What is written there may be
// anybody's.
func (r *durableRecord) lease() time.Duration {
	return time.Duration(min(r.Lease, longestLease.Milliseconds())) * time.Millisecond
}

// durableEntry is what the bucket has of a call.
type durableEntry struct {
	revision uint64 // of the last message, a mark of deletion included; 0: there is none
	there    bool
	written  time.Time // by the clock of JetStream
	record   *durableRecord
	unread   *asterisque.Abort // why there is no record
	lapsed   bool              // it runs, and its lease is over
}

// isOf reports whether the entry is that of a run.
func (e durableEntry) isOf(run string) bool { return e.record != nil && e.record.Run == run }

// isEnd reports whether the entry is the end of its run, or the answer that was put in before that.
func (e durableEntry) isEnd(end *durableRecord) bool {
	return e.there && (e.record.State == end.State || e.record.State == durableAnswered)
}

// isFree reports whether a call may be claimed in the place of the entry.
func (e durableEntry) isFree(call durableCall) bool {
	if !e.there {
		return true
	}
	return call.again && e.record != nil && e.isSame(call) && (e.lapsed || e.record.State == durableLost)
}

// isSame reports whether the entry is that of the same function with the same parameters, which are
// others in another codec.
func (e durableEntry) isSame(call durableCall) bool {
	r := e.record
	return r.Function == call.function && r.Digest == call.digest && (r.Codec == "" || r.Codec == call.codec)
}

// verdict returns the answer to a repetition, or why there is none; neither while the first one
// runs.
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
