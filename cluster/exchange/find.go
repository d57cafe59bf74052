package exchange

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
)

const (
	// askEvery is how often other domains are asked for the nodes of a name that is in use.
	askEvery = 2 * time.Second

	// forgotten is for how long nodes stay of a domain that does not answer.
	forgotten = 4 * askEvery

	// answering is how many questions of other domains are answered at once. Further ones come
	// again.
	answering = 64
)

// question asks other domains for the nodes of a name.
type question struct {
	Domain string `json:"domain"` // that asks
	Name   string `json:"name"`
	Round  uint64 `json:"round"`
}

// found is an answer, or a part of one. Parts come in their order.
type found struct {
	Domain  string           `json:"domain"` // that answers
	Round   uint64           `json:"round"`
	Members []cluster.Member `json:"members"`
	Last    bool             `json:"last"`
}

// findable lets exchanges of other domains find the nodes of this one. One exchange of a domain
// answers each question.
func (x *Exchange) findable() error {
	d := x.domain
	return d.subscribe(d.subject("find"), "domain-"+d.name, func(m *nats.Msg) {
		var q question
		if json.Unmarshal(m.Data, &q) != nil || q.Domain == d.name || !outer.IsToken(q.Name) || !x.answering.enter() {
			return
		}
		if !x.crew.begin(func() { // ends with the answer of NATS, for which that has some seconds
			defer x.answering.leave()
			x.answer(m, q)
		}) {
			x.answering.leave()
		}
	})
}

// answer tells another domain of the nodes of a name.
func (x *Exchange) answer(m *nats.Msg, q question) {
	members, err := x.cfg.Cluster.Members(x.ctx, q.Name)
	if err != nil {
		return
	}
	members = members[:min(len(members), mostMembers)]
	for {
		n := min(len(members), perAnswer)
		b, err := json.Marshal(found{Domain: x.domain.name, Round: q.Round, Members: members[:n], Last: n == len(members)})
		if err != nil || m.Respond(b) != nil || n == len(members) {
			return
		}
		members = members[n:]
	}
}

// perAnswer is how many nodes a message has, each of which has some 6 KiB at most.
const perAnswer = 8

// search keeps what is known of the nodes of a name in other domains, until ctx ends.
func (x *Exchange) search(ctx context.Context, name string, g *group) {
	answers := make(chan *nats.Msg, 256)
	inbox := x.domain.nc.NewInbox()
	sub, err := x.domain.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		x.cfg.Logger.Warn("exchange: other domains cannot be asked", "name", name, "error", err)
		return
	}
	defer sub.Unsubscribe()
	s := searched{domains: make(map[string]*answered)}
	again := time.NewTicker(askEvery)
	defer again.Stop()
	for round := uint64(1); ; round++ {
		b, _ := json.Marshal(question{x.domain.name, name, round})     // strings can be encoded
		x.domain.nc.PublishRequest(x.domain.subject("find"), inbox, b) // what fails is asked again
		x.listen(ctx, name, g, &s, answers, again.C)
		if ctx.Err() != nil {
			return
		}
	}
}

// listen takes the answers to one question, until the next one or until ctx ends.
func (x *Exchange) listen(ctx context.Context, name string, g *group, s *searched, answers <-chan *nats.Msg, next <-chan time.Time) {
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

// searched is what other domains have answered.
type searched struct {
	domains map[string]*answered
}

// mostDomains is how many domains are listened to.
const mostDomains = 256

// answered is the answer of one domain.
type answered struct {
	round   uint64
	at      time.Time                 // of the last whole round, or of the first part before that
	coming  map[string]cluster.Member // by id; of the round
	members map[string]cluster.Member // of the last round that is whole
}

// takeMessage is take of what has come.
func (s *searched) takeMessage(m *nats.Msg, name string) bool {
	var f found
	return json.Unmarshal(m.Data, &f) == nil && s.take(f, name)
}

// take takes a part of an answer, and reports whether that is whole now.
func (s *searched) take(f found, name string) bool {
	a := s.domains[f.Domain]
	switch {
	case a == nil && len(s.domains) == mostDomains:
		return false
	case a == nil:
		a = &answered{at: time.Now()}
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

// add adds nodes to those that are coming.
func (a *answered) add(members []cluster.Member, name string) {
	for _, m := range members {
		there := memberOf(m)
		if m.Name == name && there.Check() == nil && len(a.coming) < mostMembers {
			m.Addresses = nil // they are of another network
			a.coming[m.ID] = m
		}
	}
}

// forget forgets the domains that do not answer any more, and reports whether there are such.
func (s *searched) forget() bool {
	before := len(s.domains)
	for name, a := range s.domains {
		if time.Since(a.at) > forgotten {
			delete(s.domains, name)
		}
	}
	return len(s.domains) < before
}

// all returns the nodes of all other domains, by id: of those with the same id always the same one.
func (s *searched) all() map[string]cluster.Member {
	all := make(map[string]cluster.Member)
	for _, domain := range slices.Backward(slices.Sorted(maps.Keys(s.domains))) {
		maps.Copy(all, s.domains[domain].members)
	}
	return all
}

// setForeign takes what is known of the nodes of a name in other domains, unless ctx has ended.
func (n *nodes) setForeign(ctx context.Context, g *group, all map[string]cluster.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	was := g.foreign
	g.foreign = make(map[string]versioned, len(all))
	for id, m := range all {
		v := versioned{Member: memberOf(m)}
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
func (n *nodes) foreign(name, id string) (m outer.Member, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.groups[name]
	if g == nil {
		return m, false
	}
	v, ok := g.foreign[id]
	return v.Member, ok
}
