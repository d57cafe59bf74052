package cluster

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

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
