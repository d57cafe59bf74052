package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/histogram"
)

// FunctionStats has the outcomes of the calls of one function that this side served, over all
// sessions of its [Service].
type FunctionStats struct {
	Number uint16 `json:"number"`
	Name   string `json:"name"`
	Calls  uint64 `json:"calls"` // calls that arrived
	// by the name of the code; "application" for codes of applications
	Failed map[string]uint64 `json:"failed,omitempty"`
	Queued Latency           `json:"queued"` // from arrival to the begin on a worker
	Ran    Latency           `json:"ran"`    // from then to the return of the handler
}

// Latency holds percentiles of the timed calls: the first 64 of a function, and then every
// sixteenth. Each is at most an eighth above the exact value.
type Latency struct {
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Timed uint64        `json:"timed"` // number of timed calls
}

func latency(h *histogram.Histogram) Latency {
	at, n := h.Percentiles(0.5, 0.95, 0.99)
	return Latency{P50: at[0], P95: at[1], P99: at[2], Timed: n}
}

func functionStats(m *call.Meter, number uint16, name string) FunctionStats {
	f := FunctionStats{Number: number, Name: name, Calls: m.Calls.Load(), Queued: latency(&m.Queued), Ran: latency(&m.Ran)}
	for code := range m.Failed {
		n := m.Failed[code].Load()
		if n == 0 {
			continue
		}
		if f.Failed == nil {
			f.Failed = make(map[string]uint64)
		}
		name := "application"
		if code > 0 {
			name = codec.Code(code).String()
		}
		f.Failed[name] = n
	}
	return f
}
