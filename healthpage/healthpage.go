// Package healthpage answers the HTTP probes of orchestrators for liveness and readiness:
//
//	probes := healthpage.Handler(node, health)
//	mux.Handle("/healthz", probes) // 200 as long as the program can answer
//	mux.Handle("/readyz", probes)  // 503 while a part does not serve, or the node shuts down
//
// Peers of the node get the same information over their sessions: see asterisque.Service.Health.
//
// Readiness ends when a Shutdown of the node begins, not when it is complete, so that no new peer
// is sent to a node that rejects it. If the orchestrator probes only every few seconds, set the
// part "" to not serving for that long before the call of Shutdown.
package healthpage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/asterisque-go/asterisque"
)

// Handler returns a handler that answers GET and HEAD of paths that end in healthz or readyz, in
// any folder. All other paths are not found. Its answers are small JSON objects.
//
// healthz is always 200: a program that hangs does not answer. readyz is 503 if the node shuts down
// or has been closed, if a part in h is HealthNotServing, or if options of the node conflict
// (asterisque.Node.Check). Otherwise it is 200. The answer names the reason: see [Readiness]. Parts
// in an unknown state do not affect readiness. A nil h stands for no parts; a nil node panics.
//
// The handler is safe for concurrent use and never blocks. It may be served to all clients that may
// know the names of the parts.
func Handler(node *asterisque.Node, h *asterisque.Health) http.Handler {
	if node == nil {
		panic("healthpage: Handler of a nil Node: make one with asterisque.NewNode")
	}
	return &pageHandler{node, h}
}

// Readiness is the JSON answer of readyz.
type Readiness struct {
	Ready      bool     `json:"ready"`
	Draining   bool     `json:"draining"`        // the node shuts down, or has been closed
	NotServing []string `json:"not_serving"`     // the names of parts, sorted; never null
	Error      string   `json:"error,omitempty"` // of the node's options
}

type pageHandler struct {
	node   *asterisque.Node // fixed, as health is
	health *asterisque.Health
}

// ServeHTTP implements http.Handler.
func (h *pageHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// readiness returns the present state.
func (h *pageHandler) readiness() Readiness {
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
	if err != nil { // cannot happen: every value has a JSON form
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(b, '\n')) // an error means that the client has disconnected
}
