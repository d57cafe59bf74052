package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/asterisque-go/asterisque"
)

// endpointMeter counts the requests of an endpoint, as package micro does.
type endpointMeter struct {
	mu       sync.Mutex
	requests int           // guarded by mu
	errors   int           // guarded by mu
	took     time.Duration // guarded by mu: all together
	last     string        // guarded by mu: the last error, with its code
}

// ended counts a request that took so long. failed is nil if it went well.
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

// fill fills the numbers in.
func (m *endpointMeter) fill(s *micro.EndpointStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.NumRequests, s.NumErrors, s.ProcessingTime, s.LastError = m.requests, m.errors, m.took, m.last
	if m.requests > 0 {
		s.AverageProcessingTime = m.took / time.Duration(m.requests)
	}
}
