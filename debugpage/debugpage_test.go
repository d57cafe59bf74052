package debugpage

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// get requests a page from a server, over a real connection.
func get(t *testing.T, srv *httptest.Server, query string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/debug/asterisque"+query, nil)
	require.NoError(t, err)
	for _, h := range header {
		r.Header.Add("Accept", h)
	}
	resp, err := srv.Client().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/debug/asterisque", h)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// holder is a service with calls that run until they are canceled.
func holder() (svc *asterisque.Service, began chan uint16) {
	svc, began = asterisque.NewService(), make(chan uint16, 1000)
	stay := func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		began <- p.Function()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	svc.Handle(7, "solo", stay, asterisque.WithConcurrency(1))
	svc.Handle(8, "upload", stay)
	svc.Handle(9, "fails", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, asterisque.ErrUnauthorized })
	return svc, began
}

// open opens a pipe, and waits until it has arrived.
func open(t *testing.T, here, there *asterisque.Session, function uint16, opts ...asterisque.CallOption) *pipe.Pipe {
	t.Helper()
	before := len(there.Pipes())
	p, err := here.Open(t.Context(), function, nil, opts...)
	require.NoError(t, err)
	eventually(t, func() bool { return len(there.Pipes()) > before })
	return p
}

func eventually(t *testing.T, happened func() bool) {
	t.Helper()
	require.Eventually(t, happened, 2*time.Minute, time.Millisecond)
}

// scene is a server with a running call, a waiting call, and a call with unread Blocks.
func scene(t *testing.T) (client, server *asterisque.Node) {
	t.Helper()
	svc, began := holder()
	client, server = newNode(t, asterisque.WithID("client")), newNode(t, asterisque.WithID("server"), asterisque.WithService(svc))
	here, there := asterisquetest.ConnectNodes(t, client, server)
	_, err := here.Call(t.Context(), 9, nil)
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	// the answer may arrive before the call ends at the server
	eventually(t, func() bool { return len(there.Pipes()) == 0 })
	open(t, here, there, 7, asterisque.WithPriority(3))
	<-began
	open(t, here, there, 7, asterisque.WithPriority(-2))
	eventually(t, func() bool { return there.Stats().Waiting == 1 })
	upload := open(t, here, there, 8)
	<-began
	require.NoError(t, upload.Send(t.Context(), make([]byte, 20_480)))
	eventually(t, func() bool { _, ok := there.SlowestPipe(); return ok })
	eventually(t, func() bool { return len(here.Pipes()) == 3 })
	// the first call has been answered, and may still be ending
	eventually(t, func() bool { return there.Stats().Running == 2 && server.Stats().Busy == 2 })
	return client, server
}

// rows returns the lines of a page with single spaces between the cells.
func rows(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

func TestPage_Server(t *testing.T) {
	_, server := scene(t)
	resp, page := get(t, serve(t, Handler(server)), "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "text/plain; charset=utf-8", resp.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))

	said := rows(page)
	id := server.Sessions()[0].ID().String()[:8]
	require.Contains(t, said, "NODE server: 1 session, 2 calls run, 1 wait; 2 workers busy (")
	require.Regexp(t, `7 solo 2 \d\S* \d\S* \d\S* 0s 0s 0s -\n`, said, "two calls have come, one was taken, none has ended")
	require.Regexp(t, `9 fails 1 .* unauthorized 1\n`, said)
	require.Contains(t, said, id+" client pipe ready 21 KiB 2 ready 0 0 3 1 2 0 4\n", "the session: what it holds, and its calls")
	require.Regexp(t, id+` client 4608 \d+ KiB 6149 KiB 0 5125 KiB 8192 4096 KiB 0 256 KiB 0 4096 KiB \d+ KiB 12 MiB 1024 0\n`, said, "what it has promised, and that one call waits")
	require.Contains(t, said, "no session had to wait for room\n")
	require.Contains(t, said, "session "+id+" client\n")
	require.Contains(t, said, "pipe function name call priority bytes Blocks waiting\n"+
		"6 8 upload runs here 0 20 KiB 1\n"+
		"2 7 solo runs here 3 0 0\n"+
		"4 7 solo waits here -2 0 0\n", "the pipe with the most Blocks comes first, then the oldest")
	require.NotContains(t, page, "left out")
}

func TestPage_Client(t *testing.T) {
	client, _ := scene(t)
	_, page := get(t, serve(t, Handler(client)), "?format=text")
	said := rows(page)
	require.Contains(t, said, "NODE client: 1 session, 0 calls run, 0 wait; 0 workers busy (0 at most), 0 idle, 0 sessions wait for one; 16 KiB held, of ")
	require.Contains(t, said, " server pipe ready 0 0 ready 0 0 3 0 0 4 0\n")
	require.Contains(t, said, "2 7 - made here 3 0 0\n4 7 - made here -2 0 0\n6 8 - made here 0 0 0\n")
}

func TestPage_Waits(t *testing.T) {
	svc, _ := holder()
	client, server := newNode(t), newNode(t, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}), asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 64 << 10}}}))
	here, there := asterisquetest.ConnectNodes(t, client, server)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer here.Close()
	for range 10 {
		wg.Go(func() { here.Call(t.Context(), 8, make([]byte, 6<<10)) })
	}
	eventually(t, func() bool {
		// one call runs, and one or two wait there: whether its room has been returned when the
		// second one departs depends on timing
		st := there.Stats()
		return st.Running == 1 && st.Waiting >= 1 && st.Waiting+here.Stats().WaitOpens.Now == 9
	})
	_, page := get(t, serve(t, Handler(client)), "")
	require.Contains(t, page, "room at the peer ")
	id := here.ID().String()[:8]
	require.Regexp(t, "session peer now times in all now times in all now times in all now times in all now times in all\n"+id+` - 0 0 0s [78] [789] \S+ 0 0 0s 0 0 0s 0 0 0s\n`, rows(page))
	_, page = get(t, serve(t, Handler(server)), "")
	require.Contains(t, page, "no session had to wait for room", "it is not the server that waits")
}

func TestPage_NodeOrder(t *testing.T) {
	client, server := scene(t)
	_, page := get(t, serve(t, Handler(client, server)), "")
	require.Less(t, strings.Index(page, "NODE client"), strings.Index(page, "NODE server"))
}

func TestPage_JSON(t *testing.T) {
	client, server := scene(t)
	resp, body := get(t, serve(t, Handler(server, client)), "?format=json")
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var p struct {
		Time  time.Time
		Nodes []struct {
			Stats struct {
				ID        string
				Functions []asterisque.FunctionStats
			}
			FunctionsLeftOut *int `json:"functions_left_out"`
			Sessions         []struct {
				ID, Peer string
				Remote   string `json:"remote_addr"`
				Stats    struct {
					Waiting, Running, Pipes int
					State                   string `json:"inbound_state"`
					Path                    asterisque.Path
				}
				Pipes        []callView
				PipesLeftOut *int `json:"pipes_left_out"`
			}
			SessionsLeftOut *int `json:"sessions_left_out"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &p))
	require.WithinDuration(t, time.Now(), p.Time, time.Hour)
	require.Len(t, p.Nodes, 2)
	n := p.Nodes[0]
	require.Equal(t, "server", n.Stats.ID)
	require.Equal(t, "client", p.Nodes[1].Stats.ID)
	require.Len(t, n.Stats.Functions, 3)
	require.EqualValues(t, "solo", n.Stats.Functions[0].Name, "the function that is called most comes first")
	require.Len(t, n.Sessions, 1)
	s := n.Sessions[0]
	require.Equal(t, server.Sessions()[0].ID().String(), s.ID)
	require.Equal(t, []any{"client", "pipe", 1, 2, 3, "ready"}, []any{s.Peer, s.Remote, s.Stats.Waiting, s.Stats.Running, s.Stats.Pipes, s.Stats.State})
	require.Equal(t, []callView{
		{ID: 6, Function: 8, Name: "upload", Waiting: limits.Amount{Messages: 1, Bytes: 20_480 + 512}},
		{ID: 2, Function: 7, Name: "solo", Priority: 3},
		{ID: 4, Function: 7, Name: "solo", Priority: -2, Queued: true},
	}, s.Pipes)
	require.Equal(t, asterisque.BoundByApplication, s.Stats.Path.Bound)
	require.True(t, p.Nodes[1].Sessions[0].Pipes[0].Made)
	for _, leftOut := range []*int{n.FunctionsLeftOut, n.SessionsLeftOut, s.PipesLeftOut} {
		require.NotNil(t, leftOut, "a program finds it also when it is 0")
		require.Zero(t, *leftOut)
	}
}

func TestPage_Format(t *testing.T) {
	srv := serve(t, Handler(newNode(t)))
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
	for _, c := range []struct {
		query  string
		accept []string
		json   bool
	}{
		{"", nil, false},
		{"", []string{"*/*"}, false},
		{"", []string{browser}, false},
		{"", []string{"application/json"}, true},
		{"", []string{"application/json; charset=utf-8"}, true},
		{"", []string{"text/html;q=0.1, application/json"}, true},
		{"", []string{"text/html", "application/json"}, true},
		{"", []string{"not a media type;;"}, false},
		{"?format=", []string{"application/json"}, true},
		{"?format=json", nil, true},
		{"?format=json", []string{browser}, true},
		{"?format=text", []string{"application/json"}, false},
	} {
		resp, body := get(t, srv, c.query, c.accept...)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, c.json, json.Valid([]byte(body)), "%+v", c)
		require.Equal(t, c.json, resp.Header.Get("Content-Type") == "application/json", "%+v", c)
	}
}

func TestPage_BadRequests(t *testing.T) {
	h := Handler(newNode(t))
	for _, c := range []struct {
		method, target string
		status         int
		said           string
	}{
		{http.MethodPost, "/", http.StatusMethodNotAllowed, "POST is not possible here"},
		{http.MethodDelete, "/?format=json", http.StatusMethodNotAllowed, "by GET"},
		{http.MethodGet, "/?format=xml", http.StatusBadRequest, `format="xml" is neither text nor json`},
		{http.MethodHead, "/", http.StatusOK, ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.target, nil))
		require.Equal(t, c.status, w.Code)
		require.Contains(t, w.Body.String(), c.said)
		require.Equal(t, c.status == http.StatusMethodNotAllowed, w.Header().Get("Allow") == "GET, HEAD")
	}
}

func TestPage_SlowestPipes(t *testing.T) {
	svc, began := holder()
	client, server := newNode(t), newNode(t, asterisque.WithService(svc))
	here, there := asterisquetest.ConnectNodes(t, client, server)
	var last *pipe.Pipe
	for range 130 {
		last = open(t, here, there, 8)
		<-began
	}
	require.NoError(t, last.Send(t.Context(), make([]byte, 10)))
	eventually(t, func() bool { _, ok := there.SlowestPipe(); return ok })
	_, page := get(t, serve(t, Handler(server)), "")
	require.Equal(t, 100, strings.Count(page, "runs here"))
	require.Contains(t, page, "… and 30 calls more, left out\n")
	require.Contains(t, rows(page), "Blocks waiting\n258 8 upload runs here 0 522 1\n0 8 upload", "the one with Blocks comes first, though it is the youngest; then the oldest")
}

func TestPage_Bounds(t *testing.T) {
	svc, began := holder()
	server := newNode(t, asterisque.WithService(svc))
	client := newNode(t)
	for i := range 4 {
		here, there := asterisquetest.ConnectNodes(t, client, server)
		for range 4 - i {
			open(t, here, there, 8)
			<-began // from then on the session holds the call
		}
	}
	p := take([]*asterisque.Node{server, newNode(t)}, pageBounds{sessions: 3, pipes: 3, allPipes: 5, functions: 2})
	n := p.Nodes[0]
	require.Len(t, n.Stats.Functions, 2)
	require.Equal(t, 1, n.FunctionsLeftOut)
	require.EqualValues(t, 8, n.Stats.Functions[0].Number, "the function called most is shown")
	require.Len(t, n.Sessions, 3)
	require.Equal(t, 1, n.SessionsLeftOut)
	for i, want := range []struct{ pipes, leftOut int }{{3, 1}, {2, 1}, {0, 2}} {
		require.Len(t, n.Sessions[i].Pipes, want.pipes, "the sessions with the most calls come first, and use up the total")
		require.Equal(t, want.leftOut, n.Sessions[i].PipesLeftOut)
	}
	w := httptest.NewRecorder()
	p.print(w.Body)
	for _, said := range []string{"… and 1 function more, left out\n", "… and 1 session more, left out\n", "… and 1 call more, left out\n", "… and 2 calls more, left out\n"} {
		require.Contains(t, w.Body.String(), said)
	}
}

func TestPage_LimitsFirst(t *testing.T) {
	with := func(id string, st asterisque.Stats) sessionView { return sessionView{ID: id, Stats: st} }
	soft := with("soft", asterisque.Stats{OutboundState: limits.Soft})
	full := with("full", asterisque.Stats{Inbound: limits.Amount{Bytes: 10}, Outbound: limits.Amount{Bytes: 10}})
	holds := with("holds", asterisque.Stats{Inbound: limits.Amount{Bytes: 15}, Pipes: 9})
	calls := with("calls", asterisque.Stats{Pipes: 2})
	idle, idle2 := with("idle", asterisque.Stats{}), with("idle2", asterisque.Stats{})
	order := []sessionView{soft, full, holds, calls, idle, idle2}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, i < j, moreToSay(a, b) < 0, "%s before %s", a.ID, b.ID)
		}
	}
}

func TestPage_TerminalEscapes(t *testing.T) {
	svc, _ := holder()
	client, server := newNode(t, asterisque.WithID("\x1b[31m<script>\u202e\xff")), newNode(t, asterisque.WithService(svc))
	here, there := asterisquetest.ConnectNodes(t, client, server)
	open(t, here, there, 8)
	_, page := get(t, serve(t, Handler(server)), "")
	require.Equal(t, 4, strings.Count(page, `"\x1b[31m<script>\u202e\xff"`), "it is quoted wherever it is shown")
	require.NotContains(t, page, "\x1b")
	_, page = get(t, serve(t, Handler(server)), "?format=json")
	require.True(t, json.Valid([]byte(page)))
	require.NotContains(t, page, "\x1b")
}

func TestPage_EmptyNodes(t *testing.T) {
	closed := asterisque.NewNode(asterisque.WithID("closed"))
	closed.Close()
	invalid := asterisque.NewNode(asterisque.WithID("invalid"), asterisque.WithWorkers(asterisque.Workers{Session: -1}))
	_, page := get(t, serve(t, Handler(closed, invalid)), "")
	require.Contains(t, page, "NODE closed: 0 sessions")
	require.Contains(t, page, "NODE invalid: 0 sessions")
	_, page = get(t, serve(t, Handler(closed)), "?format=json")
	require.NotContains(t, page, "null", "an empty list is a list")
	_, page = get(t, serve(t, Handler()), "?format=json")
	require.Contains(t, page, `"nodes": []`)
}

// TestPage_Concurrent is for the race detector.
func TestPage_Concurrent(t *testing.T) {
	svc, _ := holder()
	echo := asterisque.Func[string, string](10, "echo")
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	client, server := newNode(t), newNode(t, asterisque.WithService(svc))
	h := Handler(client, server)
	var wg sync.WaitGroup
	for range 3 {
		here, _ := asterisquetest.ConnectNodes(t, client, server)
		wg.Go(func() {
			for range 100 {
				_, err := echo.Call(t.Context(), here, "x")
				require.NoError(t, err)
				p, err := here.Open(t.Context(), 8, nil)
				require.NoError(t, err)
				require.NoError(t, p.Send(t.Context(), []byte("x")))
				p.Abort(nil)
			}
			here.Close()
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for i := 0; ; i++ {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, []string{"/", "/?format=json"}[i%2], nil))
		require.Equal(t, http.StatusOK, w.Code)
		select {
		case <-done:
			return
		default:
		}
	}
}
