//go:build !js

package wswire_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

func ExampleHandler() {
	ctx := context.Background()
	greet := asterisque.Func[string, string](10, "greet")

	// A web server with a route for asterisque beside its other routes.
	svc := asterisque.NewService()
	greet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	there := asterisque.NewNode(asterisque.WithService(svc))
	defer there.Close() // the server does not know of the sessions
	mux := http.NewServeMux()
	mux.Handle("/rpc", wswire.Handler(there, wswire.WithOrigins("app.example.org")))
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "well") })
	server := httptest.NewServer(mux) // or http.ListenAndServe
	defer server.Close()

	here := asterisque.NewNode()
	defer here.Close()
	// "wss://example.org/rpc"
	sess, err := here.Dial(ctx, "ws"+strings.TrimPrefix(server.URL, "http")+"/rpc")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(greet.Call(ctx, sess, "asterisk"))
	// Output: hello, asterisk <nil>
}
