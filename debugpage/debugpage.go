// Package debugpage shows the current state of nodes in a browser or on a terminal: sessions and
// the states of their limits, queued messages, path estimates, promised room and waits for room,
// running calls, and the statistics of each function. It is an http.Handler for either end of a
// session:
//
//	mux.Handle("/debug/asterisque", debugpage.Handler(node))
//
// The page is plain text by default. Programs get JSON if they ask for it with ?format=json or with
// the header Accept: application/json. Durations in JSON are nanoseconds. JSON names a session by
// the hexadecimal digits of its id. The text shows the first eight of them, as logs do.
//
// A page is bounded, however much the nodes hold. It shows 1,000 sessions: those at their limits
// first, then those that hold the most. It shows 100 calls of each session and 10,000 in all: those
// with the most Blocks waiting first, then the oldest. It shows 1,000 functions of each node, those
// called most first. It says how many entries it left out. A page inspects every session, and every
// call of the sessions that it shows. It is meant for manual inspection, and for a scrape every few
// seconds.
//
// With a [Recent] the page also lists recent session events, such as the end of a session with its
// cause.
//
// The page names peers and their addresses. Restrict access to users that may know them.
package debugpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/asterisque-go/asterisque"
)

// Handler returns a handler that shows nodes in the given order. It answers GET and HEAD at any
// path. It is safe for concurrent use and never waits for a peer. A closed node is still shown, and
// holds nothing. [Recent.Handler] shows recent session events as well.
func Handler(nodes ...*asterisque.Node) http.Handler { return newHandler(nodes) }

func newHandler(nodes []*asterisque.Node) *pageHandler {
	return &pageHandler{nodes: slices.Clone(nodes), most: pageBounds{sessions: 1000, pipes: 100, allPipes: 10_000, functions: 1000}}
}

type pageHandler struct {
	nodes  []*asterisque.Node // fixed, as most is
	most   pageBounds
	recent *Recent // nil without
}

// ServeHTTP implements http.Handler.
func (h *pageHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, fmt.Sprintf("%s is not possible here: the page can only be looked at, by GET", r.Method), http.StatusMethodNotAllowed)
		return
	}
	asJSON, err := wantsJSON(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := take(h.nodes, h.most)
	p.Recent = h.recent.list()
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	// the page contains names that peers chose: a browser must not interpret it as HTML
	header.Set("X-Content-Type-Options", "nosniff")
	var b bytes.Buffer
	if asJSON {
		header.Set("Content-Type", "application/json")
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		err = e.Encode(p)
	} else {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		p.print(&b)
	}
	if err != nil { // cannot happen: every value has a JSON form
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(b.Bytes()) // an error means that the client has disconnected
}

// wantsJSON reports whether a request asks for JSON instead of text. The parameter has precedence
// over the header.
func wantsJSON(r *http.Request) (bool, error) {
	switch f := r.URL.Query().Get("format"); f {
	case "json":
		return true, nil
	case "text":
		return false, nil
	case "":
	default:
		return false, fmt.Errorf("format=%q is neither text nor json", f)
	}
	for _, accepted := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		// A browser, which accepts text/html and any other type, gets text.
		if t, _, err := mime.ParseMediaType(accepted); err == nil && t == "application/json" {
			return true, nil
		}
	}
	return false, nil
}
