package cluster

import (
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

const (
	// An answer is given again for as long as answerAge, and for answerShare times as long as it
	// took to make: so that costs a tenth of a processor at most, whoever asks.
	answerAge   = 100 * time.Millisecond
	answerShare = 10
)

// toolsAnswers makes the answers for tools, and gives each several times.
type toolsAnswers struct {
	nc    *nats.Conn // these are fixed
	about toolsInfo
	svc   *asterisque.Service // nil: there are no functions
	since time.Time

	mu    sync.Mutex
	spare allowance               // guarded by mu: for what is sent
	kept  map[string]*toolsAnswer // guarded by mu: by verb
}

// toolsAnswer is the answer to one verb.
type toolsAnswer struct {
	// value returns it with so many of the endpoints
	value func(list []shownEndpoint, all int) any
	body  []byte
	until time.Time // when body is too old
}

func (a *toolsAnswers) begin(nc *nats.Conn, about toolsInfo, svc *asterisque.Service) {
	a.nc, a.about, a.svc, a.since = nc, about, svc, time.Now().UTC()
	a.kept = map[string]*toolsAnswer{
		micro.PingVerb.String():  {value: a.ping},
		micro.InfoVerb.String():  {value: a.info},
		micro.StatsVerb.String(): {value: a.stats},
	}
}

// of returns the answer to a verb, or nil if there is none, or if too much has been answered. The
// lock is held while an answer is made, so that each is made once.
func (a *toolsAnswers) of(verb string, now time.Time) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.kept[verb]
	if k == nil || !a.spare.any(now) {
		return nil
	}
	if !now.Before(k.until) {
		begin := time.Now()
		k.body = a.encode(k)
		k.until = now.Add(max(answerAge, answerShare*time.Since(begin)))
	}
	a.spare.spend(now, len(k.body))
	return k.body
}

// encode returns an answer with as many of the endpoints as one message holds.
func (a *toolsAnswers) encode(k *toolsAnswer) []byte {
	list := shownEndpoints(a.svc, a.about)
	for n := len(list); ; n /= 2 {
		body, err := json.Marshal(k.value(list[:n], len(list)))
		if err != nil || n == 0 || int64(len(body)) <= a.nc.MaxPayload() {
			return body // an error is impossible: these are numbers and strings
		}
	}
}

func (a *toolsAnswers) ping([]shownEndpoint, int) any {
	return micro.Ping{ServiceIdentity: a.identity(0), Type: micro.PingResponseType}
}

func (a *toolsAnswers) info(list []shownEndpoint, all int) any {
	endpoints := make([]micro.EndpointInfo, 0, len(list))
	for _, e := range list {
		endpoints = append(endpoints, e.info())
	}
	return micro.Info{
		ServiceIdentity: a.identity(all - len(list)),
		Type:            micro.InfoResponseType,
		Description:     a.about.description,
		Endpoints:       endpoints,
	}
}

func (a *toolsAnswers) stats(list []shownEndpoint, all int) any {
	endpoints := make([]*micro.EndpointStats, 0, len(list))
	for _, e := range list {
		endpoints = append(endpoints, e.stats())
	}
	return micro.Stats{
		ServiceIdentity: a.identity(all - len(list)),
		Type:            micro.StatsResponseType,
		Started:         a.since,
		Endpoints:       endpoints,
	}
}

// identity says who answers, and how many endpoints the answer leaves out.
func (a *toolsAnswers) identity(left int) micro.ServiceIdentity {
	metadata := maps.Clone(a.about.metadata)
	if metadata == nil {
		metadata = make(map[string]string)
	}
	if left > 0 {
		metadata["asterisque.left_out"] = strconv.Itoa(left) + " endpoints: one message does not hold them"
	}
	return micro.ServiceIdentity{Name: a.about.name, ID: a.about.id, Version: a.about.version, Metadata: metadata}
}
