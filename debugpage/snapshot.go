package debugpage

import (
	"cmp"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// pageBounds limits the size of a page.
type pageBounds struct {
	sessions  int // of each node
	pipes     int // of each session
	allPipes  int // of all of them
	functions int // of each node
}

// page is the content of a page. It is complete before the first byte is written, so that a slow
// reader of the page blocks no other request.
type page struct {
	Time  time.Time  `json:"time"`
	Nodes []nodeView `json:"nodes"`
	// session events, the newest first
	Recent []sessionEvent `json:"recent,omitempty"`
}

type nodeView struct {
	Stats            asterisque.NodeStats `json:"stats"` // its functions bounded
	FunctionsLeftOut int                  `json:"functions_left_out"`
	Sessions         []sessionView        `json:"sessions"`
	SessionsLeftOut  int                  `json:"sessions_left_out"`
}

type sessionView struct {
	ID           string           `json:"id"`
	Peer         string           `json:"peer"` // the id that the peer gave itself
	LocalAddr    string           `json:"local_addr"`
	RemoteAddr   string           `json:"remote_addr"`
	Stats        asterisque.Stats `json:"stats"`
	Pipes        []callView       `json:"pipes"`
	PipesLeftOut int              `json:"pipes_left_out"`

	from *asterisque.Session
}

type callView struct {
	ID       uint64        `json:"id"`
	Function uint16        `json:"function"`
	Name     string        `json:"name,omitempty"` // unknown for calls of this side
	Made     bool          `json:"made"`           // by this side
	Queued   bool          `json:"queued"`         // the handler has not begun
	Priority int           `json:"priority"`
	Waiting  limits.Amount `json:"waiting"` // Blocks that have arrived and were not read
}

// take takes a snapshot of nodes.
func take(nodes []*asterisque.Node, most pageBounds) page {
	p := page{Time: time.Now(), Nodes: make([]nodeView, len(nodes))}
	for i, n := range nodes {
		p.Nodes[i] = takeNode(n, &most)
	}
	return p
}

func takeNode(from *asterisque.Node, most *pageBounds) nodeView {
	n := nodeView{Stats: from.Stats()}
	slices.SortStableFunc(n.Stats.Functions, func(a, b asterisque.FunctionStats) int { return cmp.Compare(b.Calls, a.Calls) })
	n.Stats.Functions, n.FunctionsLeftOut = first(n.Stats.Functions, most.functions)

	all := from.Sessions()
	n.Sessions = make([]sessionView, len(all))
	for i, s := range all {
		n.Sessions[i] = sessionView{ID: s.ID().String(), Stats: s.Stats(), from: s}
	}
	slices.SortFunc(n.Sessions, moreToSay)
	n.Sessions, n.SessionsLeftOut = first(n.Sessions, most.sessions)
	for i := range n.Sessions {
		n.Sessions[i].look(most)
	}
	return n
}

// moreToSay orders sessions: those at their limits first, then those that hold more, then those
// with more calls.
func moreToSay(a, b sessionView) int {
	return cmp.Or(
		cmp.Compare(max(b.Stats.InboundState, b.Stats.OutboundState), max(a.Stats.InboundState, a.Stats.OutboundState)),
		cmp.Compare(b.Stats.Inbound.Bytes+b.Stats.Outbound.Bytes, a.Stats.Inbound.Bytes+a.Stats.Outbound.Bytes),
		cmp.Compare(b.Stats.Pipes, a.Stats.Pipes),
		cmp.Compare(a.ID, b.ID),
	)
}

// look fills in the other fields of a session that is shown.
func (s *sessionView) look(most *pageBounds) {
	about := s.from.Peer()
	s.Peer, s.LocalAddr, s.RemoteAddr = about.ID, about.LocalAddr.String(), about.RemoteAddr.String()
	infos := s.from.Pipes()
	// infos is ordered by age
	slices.SortStableFunc(infos, func(a, b asterisque.PipeInfo) int { return cmp.Compare(b.Waiting.Bytes, a.Waiting.Bytes) })
	infos, s.PipesLeftOut = first(infos, min(most.pipes, most.allPipes))
	most.allPipes -= len(infos)
	s.Pipes = make([]callView, len(infos))
	for i, p := range infos {
		s.Pipes[i] = callView{p.Pipe, p.Function, p.Name, p.Made, p.Queued, int(p.Priority), p.Waiting}
	}
}

// first returns at most n elements of list, and the number of elements left out.
func first[T any](list []T, n int) (shown []T, leftOut int) {
	if len(list) <= n {
		return list, 0
	}
	return list[:n], len(list) - n
}
