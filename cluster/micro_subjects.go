package cluster

import (
	"strings"
)

// reserved reports whether a subject belongs to the NATS server: $JS, $KV, $SYS and so on. A reply
// must not go to such a subject. A node may have permission to publish to
// $JS.API.STREAM.DELETE.name or to a key of a bucket, and would do so for any sender of a request:
// the server does not check whether the sender may publish to the reply subject.
func reserved(subject string) bool { return strings.HasPrefix(subject, "$") }
