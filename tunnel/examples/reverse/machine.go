package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/tunnel"
)

// goodbye is the time limit for running requests when a side stops.
const goodbye = 5 * time.Second

// machine is behind NAT: it does not listen, and only dials out.
type machine struct {
	name  string
	pages http.Handler
	t     *teller
	// called when visitors can connect; may be nil
	ready func(address string)
}

// serve connects to the public node at url, and serves the visitors that it forwards, until ctx
// ends.
func (m *machine) serve(ctx context.Context, url string) error {
	service := asterisque.NewService()
	ln := tunnel.Listen(service, web, "web")
	node := asterisque.NewNode(asterisque.WithID(m.name), asterisque.WithService(service))
	defer node.Close()
	session, err := node.Dial(ctx, url)
	if err != nil {
		return err
	}
	m.t.tell("machine ──►", "dials %s, and offers function %d there", url, web)

	// The rest is as with any other net.Listener.
	server := &http.Server{Handler: m.pages}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	address, err := register.Call(ctx, session, m.name)
	if err == nil {
		if m.ready != nil {
			m.ready(address)
		}
		select {
		case <-ctx.Done():
			m.t.tell("machine ──►", "leaves")
			_, err = leave.Call(context.WithoutCancel(ctx), session, struct{}{}, asterisque.WithTTL(goodbye))
		case <-session.Done():
			err = fmt.Errorf("the session has ended: %w", session.Err())
		}
	}
	return errors.Join(err, stop(ctx, server, served), node.Close())
}

// stop shuts a server down after its running requests.
func stop(ctx context.Context, server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	err := server.Shutdown(ctx)
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return errors.Join(err, server.Close())
}
