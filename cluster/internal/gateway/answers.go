package gateway

import (
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

const (
	// An answer is reused for answerAge, and for answerShare times the time it took to make. So
	// answers cost a tenth of a processor at most, for any number of requests.
	answerAge   = 100 * time.Millisecond
	answerShare = 10
)

// toolsAnswers makes the answers for tools, and reuses each several times.
type toolsAnswers struct {
	maxPayload func() int64 // maximum size of an answer; fixed, as all up to since
	about      toolsInfo
	svc        *asterisque.Service // nil: no functions
	since      time.Time

	mu    sync.Mutex
	spare answerRate              // for sent bytes; guarded by mu
	kept  map[string]*toolsAnswer // by verb; guarded by mu
}

// toolsAnswer is the answer to one verb.
type toolsAnswer struct {
	// value returns the answer with a part of the endpoints, and the number of all
	value func(list []shownEndpoint, all int) any
	body  []byte
	until time.Time // when body expires
}

func (a *toolsAnswers) begin(maxPayload func() int64, about toolsInfo, svc *asterisque.Service) {
	a.maxPayload, a.about, a.svc, a.since = maxPayload, about, svc, time.Now().UTC()
	a.kept = map[string]*toolsAnswer{
		micro.PingVerb.String():  {value: a.ping},
		micro.InfoVerb.String():  {value: a.info},
		micro.StatsVerb.String(): {value: a.stats},
	}
}

// of returns the answer to a verb, or nil if there is none or the allowance is used up. It holds
// the lock while it makes an answer, so that each is made once.
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

// encode returns an answer with as many of the endpoints as fit into one message.
func (a *toolsAnswers) encode(k *toolsAnswer) []byte {
	list := shownEndpoints(a.svc, a.about)
	for n := len(list); ; n /= 2 {
		body, err := json.Marshal(k.value(list[:n], len(list)))
		if err != nil || n == 0 || int64(len(body)) <= a.maxPayload() {
			return body // an error is impossible with numbers and strings
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

// identity returns the identity of the node, with the number of endpoints that the answer leaves
// out.
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

// shownEndpoint is one function of a node in the answers for NATS's tools.
type shownEndpoint struct {
	name    string
	subject string
	total   asterisque.FunctionStats // of all its calls
	served  *endpoint                // nil: only sessions call it
}

// shownEndpoints lists the functions of a service, by number. A function that serves requests of
// NATS is listed once for each of its subjects.
func shownEndpoints(svc *asterisque.Service, about toolsInfo) (list []shownEndpoint) {
	if svc == nil {
		return nil
	}
	names := endpointNames{}
	functions := svc.Stats()
	own := make([]string, len(functions))
	for i, f := range functions { // first, before names of further subjects
		own[i] = names.pick(f.Name, f.Number)
	}
	for i, f := range functions {
		served := about.offered.of(f.Number)
		if len(served) == 0 {
			list = append(list, shownEndpoint{name: own[i], subject: about.subject, total: f})
		}
		for n, e := range served {
			name := own[i]
			if n > 0 {
				name = names.pick(e.Subject, f.Number)
			}
			list = append(list, shownEndpoint{name: name, subject: e.Subject, total: f, served: e})
		}
	}
	return list
}

func (s shownEndpoint) info() micro.EndpointInfo {
	metadata := map[string]string{
		"asterisque.function": strconv.Itoa(int(s.total.Number)),
		"asterisque.call":     "in a session of asterisque",
	}
	info := micro.EndpointInfo{Name: s.name, Subject: s.subject, Metadata: metadata}
	if s.served != nil {
		info.QueueGroup = s.served.Queue
		metadata["asterisque.call"] = "in a session of asterisque, or by a request with JSON"
	}
	return info
}

// stats returns the statistics of the requests at the subject, or of all calls if only sessions
// call the function. Data contains the statistics of all calls in both cases.
func (s shownEndpoint) stats() *micro.EndpointStats {
	stats := &micro.EndpointStats{Name: s.name, Subject: s.subject}
	stats.Data, _ = json.Marshal(s.total) // numbers and strings: there is no error
	if s.served != nil {
		stats.QueueGroup = s.served.Queue
		s.served.meter.fill(stats)
		return stats
	}
	stats.NumRequests = int(s.total.Calls)
	for _, n := range s.total.Failed {
		stats.NumErrors += int(n)
	}
	// Only percentiles are known: the median replaces the mean.
	stats.AverageProcessingTime = s.total.Ran.P50
	stats.ProcessingTime = s.total.Ran.P50 * time.Duration(s.total.Calls)
	return stats
}
