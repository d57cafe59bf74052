// Package debugpage shows what nodes hold at the moment, in a browser or on a terminal: sessions
// and the states of their limits, what waits in them, what is known of the paths to their peers,
// what they have promised and who waits for room, the calls that run, and how the calls of each
// function went. It is an http.Handler for either end of a session:
//
//	mux.Handle("/debug/asterisque", debugpage.Handler(node))
//
// The page is plain text for people, and JSON for programs, which ask for it with ?format=json or
// with the header Accept: application/json. Durations in JSON are nanoseconds, and a session is
// named by the hexadecimal digits of its id, of which the text shows the first eight, as logs do.
//
// A page is bounded, whatever the nodes hold: it shows 1,000 sessions, those at their limits and
// those that hold the most first; 100 calls of each session and 10,000 in all, those with the most
// Blocks waiting and then the oldest first; and 1,000 functions of each node, those called most. It
// says how many it left out. To make it takes a look at every session, and at every call of those
// it shows: it is meant for people who look, and for a scrape each few seconds.
//
// With a [Recent] it says what became of sessions, too: that they ended, and why.
//
// The page names peers and their addresses. Serve it only to those who may know them.
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

// Handler returns a handler that shows nodes, in this order. It answers GET and HEAD, at any path,
// is safe for concurrent use, never waits for a peer, and goes on to show a node that has been
// closed, which holds nothing. [Recent.Handler] shows what became of sessions as well.
func Handler(nodes ...*asterisque.Node) http.Handler { return newHandler(nodes) }

func newHandler(nodes []*asterisque.Node) *handler {
	return &handler{nodes: slices.Clone(nodes), most: bounds{sessions: 1000, pipes: 100, allPipes: 10_000, functions: 1000}}
}

type handler struct {
	nodes  []*asterisque.Node // these are fixed
	most   bounds
	recent *Recent // nil without
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	// what peers call themselves is on the page: no browser shall take it for HTML
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
	if err != nil { // which cannot happen: there is nothing in it that has no JSON
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(b.Bytes()) // an error means that nobody looks any more
}

// wantsJSON tells which of the two formats a request asks for. The parameter counts before the
// header.
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
		// A browser, which asks for text/html and whatever else there is, gets text.
		if t, _, err := mime.ParseMediaType(accepted); err == nil && t == "application/json" {
			return true, nil
		}
	}
	return false, nil
}
