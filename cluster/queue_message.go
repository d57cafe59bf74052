package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/priority"
)

// queueKey is the size in bytes of a posted call's key, which cannot be guessed.
const queueKey = 16

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
	if p.Version != postedVersion || len(p.Key) != queueKey || p.Codec != queueCodec.Name() {
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
