package asterisque

import (
	"encoding/json"
	"log/slog"
)

// NodeStats is a snapshot of a node. Its String is JSON: published with
// expvar.Publish("asterisque", expvar.Func(func() any { return node.Stats() })), it is part of the
// program's variables.
type NodeStats struct {
	ID       string `json:"id,omitempty"`
	Sessions int    `json:"sessions"` // that have not ended
	// sums over all sessions; counters include ended sessions; maxima and states are the highest of
	// all sessions; a share without a bound adds nothing to Room
	Total Stats `json:"total"`
	// bytes that count towards the budget, to within 48 KiB for each session
	Held   int `json:"held"`
	Budget int `json:"budget"` // of bytes; see Limits.Budget
	Busy   int `json:"busy"`   // workers that run handlers
	// of those, the ones lent to nested calls, and to calls of WatchHealth
	Lent        int `json:"lent"`
	MostBusy    int `json:"most_busy"`    // maximum of Busy
	IdleWorkers int `json:"idle_workers"` // kept for the next call
	// sessions that wait for workers of the node; see Workers.Node
	Crowded int `json:"crowded"`
	// of the node's own service; see Service.Stats for further services
	Functions []FunctionStats `json:"functions"`
}

// Stats returns the current statistics of the node. The numbers are read one after the other, not
// in one instant.
func (n *Node) Stats() NodeStats {
	if n.isZero() {
		return NodeStats{}
	}
	st := NodeStats{ID: n.cfg.id, Functions: n.cfg.service.Stats()}
	n.mu.Lock()
	st.Total = n.past
	n.mu.Unlock()
	for _, s := range n.Sessions() {
		st.Sessions++
		of := s.Stats()
		st.Total.add(&of)
	}
	st.Held, st.Budget = n.Owners.Held()
	c := n.scheduler.Stats()
	st.Busy, st.Lent, st.MostBusy, st.IdleWorkers, st.Crowded = c.Busy, c.Lent, c.Most, c.Idle, c.Waiting
	return st
}

// String returns st as JSON.
func (st NodeStats) String() string {
	b, err := json.Marshal(st)
	if err != nil {
		return err.Error() // impossible: every field has a JSON form
	}
	return string(b)
}

// LogValue implements slog.LogValuer.
func (st NodeStats) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("sessions", st.Sessions), slog.Any("total", st.Total), slog.Int("busy", st.Busy), slog.Int("most_busy", st.MostBusy))
}
