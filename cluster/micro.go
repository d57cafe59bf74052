package cluster

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

const (
	// What may wait of one subscription of tools: honest requests hold next to nothing. Package
	// nats counts no headers, which can be as large as messages: so the number matters, too.
	toolsPending      = 64
	toolsPendingBytes = 64 << 10
)

// tools answers what NATS's own tools ask of a node, as package micro does: `nats micro ls`,
// `info`, `stats` and `ping` show the node, its functions and their numbers.
//
// Nothing here ever reads such an answer. Who answers for the name of another node, which anybody
// can who may subscribe to "$SRV.>" and publish to inboxes, deceives whoever looks at the tools,
// and no node.
type tools struct {
	nc      *nats.Conn // these are fixed
	subs    []*nats.Subscription
	answers toolsAnswers
}

// toolsInfo is what tools tells of a node.
type toolsInfo struct {
	name, id    string            // tokens of a subject
	version     string            // a semantic version; empty is 0.0.0
	description string            // may be empty
	metadata    map[string]string // may be nil
	subject     string            // what is shown for functions that only sessions call
	offered     *endpoints        // the functions that take requests of NATS; nil: none
}

// newTools begins to answer for a node. svc has its functions; if it is nil, the node has none. The
// error wraps nats.ErrPermissionViolation, and names the subject, if the server does not allow it.
func newTools(ctx context.Context, nc *nats.Conn, about toolsInfo, svc *asterisque.Service) (*tools, error) {
	if about.version == "" {
		about.version = "0.0.0"
	}
	if !semantic.MatchString(about.version) {
		return nil, fmt.Errorf("the version %q is no semantic version, such as 1.4.0", about.version)
	}
	t := &tools{nc: nc}
	t.answers.begin(nc, about, svc)
	if err := t.subscribe(ctx, about); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// semantic is what package micro, and what reads its answers, take for a version.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// subscribe asks for the requests. Each verb comes with the name and the id of a node, with the
// name alone, and without either: with a wildcard for the verb these are three subscriptions, each
// with a goroutine of package nats, instead of nine.
func (t *tools) subscribe(ctx context.Context, about toolsInfo) error {
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
	return subscribed(ctx, t.nc, before, subjects...)
}

// asked answers a request. Package nats calls it on a goroutine of each subscription.
func (t *tools) asked(m *nats.Msg) {
	if m.Reply == "" || reserved(m.Reply) {
		return
	}
	_, verb, _ := strings.Cut(m.Subject, ".")
	verb, _, _ = strings.Cut(verb, ".")
	if body := t.answers.of(verb, time.Now()); body != nil {
		t.nc.Publish(m.Reply, body) // if that fails, whoever asked asks again
	}
}

// close ends the answers.
func (t *tools) close() {
	for _, sub := range t.subs {
		sub.Unsubscribe() // fails if the connection is closed, and then that is done
	}
}
