package gateway

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

const (
	// Limits of the waiting messages of one subscription of tools: legitimate requests are tiny.
	// Package nats does not count headers, which can be as large as messages, so the number
	// matters, too.
	toolsPending      = 64
	toolsPendingBytes = 64 << 10
)

// microResponder answers the requests of NATS's own tools to a node, like package micro: `nats
// micro ls`, `info`, `stats` and `ping` show the node, its functions and their statistics.
//
// No node reads such an answer. A client that may subscribe to "$SRV.>" and publish to inboxes can
// answer in the name of another node. This deceives the user of the tools, and no node.
type microResponder struct {
	nc      *nats.Conn // fixed, as subs is
	subs    []*nats.Subscription
	answers toolsAnswers
}

// toolsInfo is the information of tools about a node.
type toolsInfo struct {
	name, id    string            // tokens of a subject
	version     string            // a semantic version; empty is 0.0.0
	description string            // may be empty
	metadata    map[string]string // may be nil
	subject     string            // shown as the subject of functions that only sessions call
	offered     *endpoints        // the functions that serve requests of NATS; nil: none
}

// newTools begins to answer for a node. svc contains its functions; if it is nil, the node has
// none. The error wraps nats.ErrPermissionViolation and names the subject if the server does not
// allow it.
func newTools(ctx context.Context, nc *nats.Conn, about toolsInfo, svc *asterisque.Service) (*microResponder, error) {
	if about.version == "" {
		about.version = "0.0.0"
	}
	if !semantic.MatchString(about.version) {
		return nil, fmt.Errorf("the version %q is no semantic version, such as 1.4.0", about.version)
	}
	t := &microResponder{nc: nc}
	t.answers.begin(nc.MaxPayload, about, svc)
	if err := t.subscribe(ctx, about); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// semantic matches the versions that package micro, and the readers of its answers, accept.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// subscribe subscribes to the requests. Each verb comes with the name and the id of a node, with
// the name alone, and without either. With a wildcard for the verb these are three subscriptions,
// each with a goroutine of package nats, instead of nine.
func (t *microResponder) subscribe(ctx context.Context, about toolsInfo) error {
	all := micro.APIPrefix + ".*"
	before := t.nc.LastError()
	var subjects []string
	for _, of := range []string{"", "." + about.name, "." + about.name + "." + about.id} {
		sub, err := t.nc.Subscribe(all+of, t.asked)
		if err != nil {
			return err
		}
		t.subs = append(t.subs, sub)
		subjects = append(subjects, all+of)
		if err := sub.SetPendingLimits(toolsPending, toolsPendingBytes); err != nil {
			return err
		}
	}
	return kv.Subscribed(ctx, t.nc, before, subjects...)
}

// asked answers a request. Package nats calls it on a goroutine of each subscription.
func (t *microResponder) asked(m *nats.Msg) {
	if m.Reply == "" || reserved(m.Reply) {
		return
	}
	_, verb, _ := strings.Cut(m.Subject, ".")
	verb, _, _ = strings.Cut(verb, ".")
	if body := t.answers.of(verb, time.Now()); body != nil {
		t.nc.Publish(m.Reply, body) // if it fails, the client retries
	}
}

// close ends the subscriptions.
func (t *microResponder) close() {
	for _, sub := range t.subs {
		sub.Unsubscribe() // fails if the connection is closed, which ends the subscription as well
	}
}

const (
	allowancePerSecond = 1 << 20
	allowanceLeast     = 1 << 10 // minimum cost of a message
)

// answerRate limits the rate of answers to tools: 1 MiB a second, where each message counts at
// least 1 KiB. The unused part of the last second may be sent at once. The zero allowance is full.
type answerRate struct {
	paid time.Time // when the sent bytes are paid for
}

// any reports whether a message of any size may be sent now.
func (a *answerRate) any(now time.Time) bool { return a.paid.Sub(now) < time.Second }

// spend takes the cost of n bytes.
func (a *answerRate) spend(now time.Time, n int) {
	if a.paid.Before(now) {
		a.paid = now
	}
	a.paid = a.paid.Add(time.Duration(max(n, allowanceLeast)) * time.Second / allowancePerSecond)
}

// reserved reports whether a subject belongs to the NATS server: $JS, $KV, $SYS and so on. A reply
// must not go to such a subject. A node may have permission to publish to
// $JS.API.STREAM.DELETE.name or to a key of a bucket, and would do so for any sender of a request:
// the server does not check whether the sender may publish to the reply subject.
func reserved(subject string) bool { return strings.HasPrefix(subject, "$") }
