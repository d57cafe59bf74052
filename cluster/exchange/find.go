package exchange

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
)

const (
	// askEvery is the interval of queries to other domains for the nodes of a name in use.
	askEvery = 2 * time.Second

	// forgotten is the time after which the nodes of a silent domain are removed.
	forgotten = 4 * askEvery

	// answering is the maximum number of concurrent answers to other domains. Dropped queries are
	// repeated.
	answering = 64
)

// domainQuery is a query to other domains for the nodes of a name.
type domainQuery struct {
	Domain string `json:"domain"` // of the sender
	Name   string `json:"name"`
	Round  uint64 `json:"round"`
}

// foundNodes is an answer, or a part of one. Parts arrive in their order.
type foundNodes struct {
	Domain  string           `json:"domain"` // of the sender
	Round   uint64           `json:"round"`
	Members []cluster.Member `json:"members"`
	Last    bool             `json:"last"`
}

// findable answers the queries of other domains. One exchange of a domain answers each query.
func (x *Exchange) findable() error {
	d := x.domain
	return d.subscribe(d.subject("find"), "domain-"+d.name, func(m *nats.Msg) {
		var q domainQuery
		if json.Unmarshal(m.Data, &q) != nil || q.Domain == d.name || !relayproto.IsToken(q.Name) || !x.answerSlots.enter() {
			return
		}
		if !x.goroutines.begin(func() { // ends with the answer of NATS, which has some seconds
			defer x.answerSlots.leave()
			x.answer(m, q)
		}) {
			x.answerSlots.leave()
		}
	})
}

// answer sends the nodes of a name to another domain.
func (x *Exchange) answer(m *nats.Msg, q domainQuery) {
	members, err := x.cfg.Cluster.Members(x.ctx, q.Name)
	if err != nil {
		return
	}
	members = members[:min(len(members), mostMembers)]
	for {
		n := min(len(members), perAnswer)
		b, err := json.Marshal(foundNodes{Domain: x.domain.name, Round: q.Round, Members: members[:n], Last: n == len(members)})
		if err != nil || m.Respond(b) != nil || n == len(members) {
			return
		}
		members = members[n:]
	}
}

// perAnswer is the number of nodes in a message, each of at most about 6 KiB.
const perAnswer = 8

// search keeps the nodes of a name in other domains current, until ctx ends.
func (x *Exchange) search(ctx context.Context, name string, g *nodeGroup) {
	answers := make(chan *nats.Msg, 256)
	inbox := x.domain.nc.NewInbox()
	sub, err := x.domain.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		x.cfg.Logger.Warn("exchange: other domains cannot be asked", "name", name, "error", err)
		return
	}
	defer sub.Unsubscribe()
	s := searchResult{domains: make(map[string]*domainAnswer)}
	again := time.NewTicker(askEvery)
	defer again.Stop()
	for round := uint64(1); ; round++ {
		b, _ := json.Marshal(domainQuery{x.domain.name, name, round})  // strings can be encoded
		x.domain.nc.PublishRequest(x.domain.subject("find"), inbox, b) // a failed query is repeated
		x.listen(ctx, name, g, &s, answers, again.C)
		if ctx.Err() != nil {
			return
		}
	}
}

// listen processes the answers to one query, until the next one or until ctx ends.
func (x *Exchange) listen(ctx context.Context, name string, g *nodeGroup, s *searchResult, answers <-chan *nats.Msg, next <-chan time.Time) {
	changed := s.forget()
	for {
		if changed {
			x.nodes.setForeign(ctx, g, s.all())
		}
		select {
		case m := <-answers:
			changed = s.takeMessage(m, name)
		case <-next:
			return
		case <-ctx.Done():
			return
		}
	}
}

// searchResult contains the answers of other domains.
type searchResult struct {
	domains map[string]*domainAnswer
}

// mostDomains is the maximum number of domains.
const mostDomains = 256

// domainAnswer is the answer of one domain.
type domainAnswer struct {
	round   uint64
	at      time.Time                 // of the last complete round, or of a first part before
	coming  map[string]cluster.Member // nodes of the round so far, by id
	members map[string]cluster.Member // nodes of the last complete round
}

// takeMessage is take for a message.
func (s *searchResult) takeMessage(m *nats.Msg, name string) bool {
	var f foundNodes
	return json.Unmarshal(m.Data, &f) == nil && s.take(f, name)
}

// take adds a part of an answer, and reports whether the answer is complete.
func (s *searchResult) take(f foundNodes, name string) bool {
	a := s.domains[f.Domain]
	switch {
	case a == nil && len(s.domains) == mostDomains:
		return false
	case a == nil:
		a = &domainAnswer{at: time.Now()}
		s.domains[f.Domain] = a
	}
	if a.round != f.Round || a.coming == nil {
		a.round, a.coming = f.Round, make(map[string]cluster.Member)
	}
	a.add(f.Members, name)
	if !f.Last {
		return false
	}
	a.at, a.members, a.coming = time.Now(), a.coming, nil
	return true
}

// add adds nodes to the present round.
func (a *domainAnswer) add(members []cluster.Member, name string) {
	for _, m := range members {
		there := memberOf(m)
		if m.Name == name && there.Check() == nil && len(a.coming) < mostMembers {
			m.Addresses = nil // of another network
			a.coming[m.ID] = m
		}
	}
}

// forget removes silent domains, and reports whether there were any.
func (s *searchResult) forget() bool {
	before := len(s.domains)
	for name, a := range s.domains {
		if time.Since(a.at) > forgotten {
			delete(s.domains, name)
		}
	}
	return len(s.domains) < before
}

// all returns the nodes of all other domains, by id. The choice between nodes with the same id is
// deterministic.
func (s *searchResult) all() map[string]cluster.Member {
	all := make(map[string]cluster.Member)
	for _, domain := range slices.Backward(slices.Sorted(maps.Keys(s.domains))) {
		maps.Copy(all, s.domains[domain].members)
	}
	return all
}

// setForeign stores the nodes of a name in other domains, unless ctx has ended.
func (n *nodeRegistry) setForeign(ctx context.Context, g *nodeGroup, all map[string]cluster.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	was := g.foreign
	g.foreign = make(map[string]nodeVersion, len(all))
	for id, m := range all {
		v := nodeVersion{Member: memberOf(m)}
		if old, ok := was[id]; ok && old.Instance == m.Instance && old.State == v.State {
			v.version = old.version
		} else {
			n.version++
			v.version = n.version
		}
		g.foreign[id] = v
	}
	g.changed.Signal()
}

// foreign returns a node of another domain, if its name is in use here.
func (n *nodeRegistry) foreign(name, id string) (m relayproto.Member, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.groups[name]
	if g == nil {
		return m, false
	}
	v, ok := g.foreign[id]
	return v.Member, ok
}
