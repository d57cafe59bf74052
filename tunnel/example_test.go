package tunnel_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

// A machine that accepts no connections serves HTTP to a public one, through the session that it
// has dialled itself.
func Example() {
	ctx := context.Background()

	// the machine behind the firewall
	service := asterisque.NewService()
	web := tunnel.Listen(service, 80, "web")
	defer web.Close()
	go http.Serve(web, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.URL.Query().Get("name"))
	}))
	behind := asterisque.NewNode(asterisque.WithService(service))
	defer behind.Close()

	// the public machine, to which the other connects
	public := asterisque.NewNode()
	defer public.Close()
	near, far := wire.Pipe() // stands for a connection of TCP, or WebSocket
	go behind.Attach(ctx, near)
	session, err := public.Accept(ctx, far)
	if err != nil {
		log.Panic(err)
	}

	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return tunnel.Dial(ctx, session, 80, asterisque.WithPriority(-10))
		},
	}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://behind/?name=asterisk")
	if err != nil {
		log.Panic(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Println(string(text), err)
	// Output: hello, asterisk <nil>
}
