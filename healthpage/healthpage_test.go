package healthpage_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/healthpage"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestMain(m *testing.M) { leak.Main(m) }

// get requests a page from h, without a network.
func get(h http.Handler, path string) (status int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func newNode(t *testing.T, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}

func TestReadiness_Parts(t *testing.T) {
	for name, c := range map[string]struct {
		parts  map[string]asterisque.HealthState
		status int
		body   string
	}{
		"nothing is known":     {map[string]asterisque.HealthState{"": asterisque.HealthUnknown}, 200, `{"ready":true,"draining":false,"not_serving":[]}`},
		"all serve":            {map[string]asterisque.HealthState{"db": asterisque.HealthServing}, 200, `{"ready":true,"draining":false,"not_serving":[]}`},
		"one part does not":    {map[string]asterisque.HealthState{"db": asterisque.HealthNotServing}, 503, `{"ready":false,"draining":false,"not_serving":["db"]}`},
		"some do not":          {map[string]asterisque.HealthState{"b": asterisque.HealthNotServing, "a": asterisque.HealthNotServing, "c": asterisque.HealthServing}, 503, `{"ready":false,"draining":false,"not_serving":["a","b"]}`},
		"the program does not": {map[string]asterisque.HealthState{"": asterisque.HealthNotServing}, 503, `{"ready":false,"draining":false,"not_serving":[""]}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := asterisque.NewHealth()
			for part, state := range c.parts {
				require.NoError(t, h.Set(part, state))
			}
			page := healthpage.Handler(newNode(t), h)
			status, body := get(page, "/readyz")
			require.Equal(t, c.status, status)
			require.JSONEq(t, c.body, body)
			status, body = get(page, "/probes/healthz")
			require.Equal(t, 200, status, "it lives all the same")
			require.JSONEq(t, `{"alive":true}`, body)
		})
	}
}

func TestReadiness_Shutdown(t *testing.T) {
	svc, began, end := asterisque.NewService(), make(chan struct{}), make(chan struct{})
	svc.Handle(1, "runs", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { close(began); <-end; return nil, nil })
	here, there := newNode(t), newNode(t, asterisque.WithService(svc))
	dialled, _ := asterisquetest.ConnectNodes(t, here, there)
	page := healthpage.Handler(there, nil)
	status, _ := get(page, "/readyz")
	require.Equal(t, 200, status)
	call, err := dialled.Open(t.Context(), 1, nil)
	require.NoError(t, err)
	<-began
	down := make(chan error)
	go func() { down <- there.Shutdown(context.Background()) }()
	<-there.Draining()
	wantDraining := func() {
		t.Helper()
		status, body := get(page, "/readyz")
		require.Equal(t, 503, status)
		require.JSONEq(t, `{"ready":false,"draining":true,"not_serving":[]}`, body)
		status, _ = get(page, "/healthz")
		require.Equal(t, 200, status)
	}
	wantDraining()
	close(end)
	require.NoError(t, <-down)
	wantDraining()
	_, err = call.Result(t.Context())
	require.NoError(t, err)
}

func TestReadiness_BadOptions(t *testing.T) {
	status, body := get(healthpage.Handler(newNode(t, asterisque.WithMaxOutstanding(1, 0)), nil), "/readyz")
	require.Equal(t, 503, status)
	require.Contains(t, body, "WithMaxOutstanding")
}

func TestProbes_BadRequests(t *testing.T) {
	h := healthpage.Handler(newNode(t), asterisque.NewHealth())
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/", 404}, {http.MethodGet, "/readyz/more", 404}, {http.MethodGet, "/favicon.ico", 404},
		{http.MethodPost, "/readyz", 405}, {http.MethodDelete, "/healthz", 405},
		{http.MethodHead, "/readyz", 200}, {http.MethodGet, "/readyz?verbose", 200},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		require.Equal(t, c.status, w.Code, "%s %s", c.method, c.path)
	}
	require.Panics(t, func() { healthpage.Handler(nil, nil) })
}

func TestProbes_OverHTTP(t *testing.T) {
	mux, probes := http.NewServeMux(), healthpage.Handler(newNode(t), asterisque.NewHealth())
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, path := range []string{"/healthz", "/readyz"} {
		resp, err := srv.Client().Get(srv.URL + path)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
		require.Contains(t, string(body), "true")
	}
}

func ExampleHandler() {
	health := asterisque.NewHealth()
	svc := asterisque.NewService()
	svc.Health(health) // for peers
	node := asterisque.NewNode(asterisque.WithService(svc))
	defer node.Close()
	mux, probes := http.NewServeMux(), healthpage.Handler(node, health)
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)

	ask := func() {
		status, body := get(mux, "/readyz")
		fmt.Print(status, " ", body)
	}
	ask()
	health.Set("database", asterisque.HealthNotServing)
	ask()
	// Output:
	// 200 {"ready":true,"draining":false,"not_serving":[]}
	// 503 {"ready":false,"draining":false,"not_serving":["database"]}
}
