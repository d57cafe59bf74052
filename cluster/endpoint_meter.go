package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

// endpointMeter counts the requests of an endpoint, like package micro.
type endpointMeter struct {
	mu       sync.Mutex
	requests int           // guarded by mu
	errors   int           // guarded by mu
	took     time.Duration // total time; guarded by mu
	last     string        // the last error, with its code; guarded by mu
}

// ended counts a request with its duration. failed is nil for a success.
func (m *endpointMeter) ended(took time.Duration, failed *asterisque.Abort) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.took += took
	if failed != nil {
		m.errors++
		m.last = fmt.Sprintf("%d:%s", failed.Code, explanation(failed))
	}
}

// fill copies the counts to s.
func (m *endpointMeter) fill(s *micro.EndpointStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.NumRequests, s.NumErrors, s.ProcessingTime, s.LastError = m.requests, m.errors, m.took, m.last
	if m.requests > 0 {
		s.AverageProcessingTime = m.took / time.Duration(m.requests)
	}
}
