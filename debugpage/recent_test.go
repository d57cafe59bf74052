package debugpage

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/limits"
)

// events returns the What and the Why of events, the newest first.
func events(r *Recent) (list []string) {
	for _, e := range r.list() {
		list = append(list, strings.TrimSpace(e.What+" "+e.Why))
	}
	return list
}

func TestRecent_Page(t *testing.T) {
	recent := new(Recent)
	client, server := newNode(t, asterisque.WithID("client")), newNode(t, asterisque.WithHooks(recent.Hooks()))
	here, there := asterisquetest.ConnectNodes(t, client, server)
	here.Close()
	eventually(t, func() bool { return len(recent.list()) == 2 })
	page := httptest.NewRecorder()
	recent.Handler(server).ServeHTTP(page, httptest.NewRequest("GET", "/", nil))
	said := rows(page.Body.String())
	id := there.ID().String()[:8]
	require.Regexp(t, `RECENTLY\n\ntime session peer what why\n\S+ `+id+` client ended asterisque: session closed: .*\n\S+ `+id+` client begun -\n`, said)

	page = httptest.NewRecorder()
	recent.Handler(server).ServeHTTP(page, httptest.NewRequest("GET", "/?format=json", nil))
	require.Contains(t, page.Body.String(), `"what": "begun"`)
}

func TestRecent_Hooks(t *testing.T) {
	recent := new(Recent)
	_, s := asterisquetest.ConnectNodes(t, newNode(t), newNode(t))
	h := recent.Hooks()
	h.SessionBegun(s)
	h.SessionAway(s, errors.New("lost"))
	h.SessionBack(s)
	for _, state := range []limits.State{limits.Congested, limits.Soft, limits.Ready} {
		h.LimitChanged(s, asterisque.Inbound, state)
	}
	h.Dropped(s, asterisque.Drop{Reason: asterisque.DropExpired})
	h.SessionEnded(s, errors.New(strings.Repeat("x", 1000)))
	require.Equal(t, []string{"ended " + strings.Repeat("x", longestText), "dropped expired", "limit reached inbound soft", "back", "away lost", "begun"}, events(recent))
	for i := range 3 * mostRecent {
		h.SessionAway(s, fmt.Errorf("%d", i))
	}
	require.Len(t, events(recent), mostRecent)
	require.Equal(t, "away 299", events(recent)[0])
}
