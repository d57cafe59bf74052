// Package healthpage answers the probes by which orchestrators find out over HTTP whether a program
// lives, and whether it is to get work:
//
//	probes := healthpage.Handler(node, health)
//	mux.Handle("/healthz", probes) // 200 as long as the program can answer
//	mux.Handle("/readyz", probes)  // 503 while a part does not serve, or the node shuts down
//
// Peers of the node learn the same over their sessions: see asterisque.Service.Health.
//
// Readiness ends when a Shutdown of the node begins, and not when it is over, so that no new peer
// is sent to a node that refuses it. Where an orchestrator looks only every few seconds, a program
// lets the part "" not serve for as long before it calls Shutdown.
package healthpage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/asterisque-go/asterisque"
)

// Handler returns a handler that answers GET and HEAD of paths whose last element is healthz or
// readyz, in any folder, and has no other pages. Its answers are small JSON objects.
//
// healthz is 200, always: a program that stands still does not answer. readyz is 200 as well, or
// 503 if the node shuts down or has been closed, if a part in h is HealthNotServing, or if options
// of the node do not fit (asterisque.Node.Check); then it says which: see [Readiness]. Parts that
// are unknown hold nobody up. h may be nil, which stands for no parts; a nil node panics.
//
// It is safe for concurrent use, waits for nothing, and may be served to anybody who may know the
// names of the parts.
func Handler(node *asterisque.Node, h *asterisque.Health) http.Handler {
	if node == nil {
		panic("healthpage: Handler of a nil Node: make one with asterisque.NewNode")
	}
	return &handler{node, h}
}

// Readiness is what readyz answers, as JSON.
type Readiness struct {
	Ready      bool     `json:"ready"`
	Draining   bool     `json:"draining"`        // the node shuts down, or has been closed
	NotServing []string `json:"not_serving"`     // the names of parts, sorted; never null
	Error      string   `json:"error,omitempty"` // of the node's options
}

type handler struct {
	node   *asterisque.Node // these are fixed
	health *asterisque.Health
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, fmt.Sprintf("%s is not possible here: probes are made by GET", r.Method), http.StatusMethodNotAllowed)
		return
	}
	switch path.Base(r.URL.Path) {
	case "healthz":
		answer(w, http.StatusOK, struct {
			Alive bool `json:"alive"`
		}{true})
	case "readyz":
		status, is := http.StatusOK, h.readiness()
		if !is.Ready {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, is)
	default:
		http.Error(w, "there are only healthz and readyz here", http.StatusNotFound)
	}
}

// readiness tells how things are now.
func (h *handler) readiness() Readiness {
	is := Readiness{NotServing: []string{}}
	select {
	case <-h.node.Draining():
		is.Draining = true
	default:
	}
	if err := h.node.Check(); err != nil {
		is.Error = err.Error()
	}
	if h.health != nil {
		for part, state := range h.health.States() {
			if state == asterisque.HealthNotServing {
				is.NotServing = append(is.NotServing, part)
			}
		}
	}
	slices.Sort(is.NotServing)
	is.Ready = !is.Draining && is.Error == "" && len(is.NotServing) == 0
	return is
}

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // which cannot happen: there is nothing in it that has no JSON
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(b, '\n')) // an error means that nobody asks any more
}
