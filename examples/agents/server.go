package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// server is one of the servers for agents. It can be restarted at the same address.
type server struct {
	name   string // these are fixed
	secure *tls.Config
	log    *slog.Logger
	health *asterisque.Health

	served, called atomic.Int64 // calls of agents, and calls to agents
	streams        atomic.Int64 // that are open now

	mu      sync.Mutex
	url     string           // guarded by mu, as all below; the actual port once it listens
	state   string           // for the display
	node    *asterisque.Node // nil while the server is stopped
	roster  *roster          // the agents connected to node
	serving *errgroup.Group  // goroutines that accept for node
	reports map[string]int   // by agent
}

func newServer(name, url string, secure *tls.Config, log *slog.Logger) *server {
	return &server{name: name, url: url, secure: secure, log: log, health: asterisque.NewHealth(), state: "away", roster: newRoster(), reports: make(map[string]int)}
}

// start starts a new node that listens.
func (s *server) start(ctx context.Context) error {
	ln, err := wire.Listen(ctx, s.address(), wire.Options{TLS: s.secure})
	if err != nil {
		return err
	}
	agents := newRoster()
	node := asterisque.NewNode(asterisque.WithHooks(agents.hooks()), asterisque.WithID(s.name), asterisque.WithService(s.service()), asterisque.WithLogger(s.log),
		asterisque.WithAccess(asterisque.Access{Accept: admit}))
	serving := new(errgroup.Group)
	serving.Go(func() error { return node.Serve(ctx, ln) }) // ends with the node
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url, s.node, s.roster, s.serving, s.state = ln.URL(), node, agents, serving, "serving"
	return s.health.Set("", asterisque.HealthServing)
}

// admit admits an agent under the name in its certificate. TLS has verified that before.
func admit(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
	c := p.Certificate()
	if c == nil || c.Subject.CommonName == "" {
		return nil, asterisque.ErrUnauthorized.Withf("an agent needs a certificate with its name")
	}
	return &asterisque.Grant{Subject: c.Subject.CommonName}, nil
}

// stop drains the server: running calls finish, and new ones are refused.
func (s *server) stop(ctx context.Context) error {
	s.mu.Lock()
	node, serving := s.node, s.serving
	if node == nil {
		s.mu.Unlock()
		return nil
	}
	s.state = "draining"
	s.mu.Unlock()
	err := node.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("server %s: %w", s.name, err)
	}
	if failed := serving.Wait(); err == nil {
		err = failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.node, s.roster, s.serving = "away", nil, newRoster(), nil
	return err
}

// service has the functions that the server offers to agents.
func (s *server) service() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Health(s.health)
	report.Handle(svc, func(ctx context.Context, _ state) (int, error) {
		s.served.Add(1)
		agent := asterisque.SessionOf(ctx).Peer().Subject
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reports[agent]++
		return s.reports[agent], nil
	})
	news.Handle(svc, func(ctx context.Context, _ struct{}, out *asterisque.Pipe[string, struct{}]) (lines int, err error) {
		s.served.Add(1)
		s.streams.Add(1)
		defer s.streams.Add(-1)
		err = pulse(ctx, func(n int) error {
			lines++
			return out.Send(ctx, fmt.Sprintf("server %s says %d", s.name, n))
		})
		return lines, err
	})
	return svc
}

func (s *server) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// session returns that of an agent, or nil: always while the server drains.
func (s *server) session(agent string) *asterisque.Session {
	s.mu.Lock()
	r, serving := s.roster, s.state == "serving"
	s.mu.Unlock()
	if !serving {
		return nil
	}
	return r.session(agent)
}

// doing returns the state of the server, and the connected agents.
func (s *server) doing() (state string, r *roster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.roster
}

// await waits until the given number of agents is connected.
func (s *server) await(ctx context.Context, agents int) error {
	ctx, done := context.WithTimeout(ctx, longest)
	defer done()
	for {
		_, r := s.doing()
		n := r.len()
		if n >= agents {
			return nil
		}
		if err := rest(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("server %s has %d agents, and should have %d: %w", s.name, n, agents, err)
		}
	}
}
