package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strings"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

const (
	// bulk is the priority of downloads, below that of all other requests.
	bulk = -10

	// kept is how many idle connections to a machine are kept for the next visitors. Each occupies
	// a worker of its session, as long as it is open.
	kept = 16
)

// gateway is the public node. Machines connect to it, and it forwards visitors to them, each
// through the session that the machine has dialled.
type gateway struct {
	address string // of visitors, as a URL; fixed, as all but guests
	proxy   http.Handler
	t       *teller

	mu     sync.Mutex
	guests map[string]*guest // guarded by mu; by their names
}

// guest is a connected machine.
type guest struct {
	session          *asterisque.Session
	usual, downloads *http.Transport
}

func newGuest(s *asterisque.Session) *guest {
	return &guest{session: s, usual: through(s), downloads: through(s, asterisque.WithPriority(bulk))}
}

// through makes requests through connections in a session.
func through(s *asterisque.Session, opts ...asterisque.CallOption) *http.Transport {
	return &http.Transport{
		DisableCompression:  true, // bodies are forwarded unchanged
		MaxIdleConnsPerHost: kept,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return tunnel.Dial(ctx, s, web, opts...)
		},
	}
}

func newGateway(address string, t *teller) *gateway {
	g := &gateway{address: address, t: t, guests: make(map[string]*guest)}
	g.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			name, path := split(r.In.URL.Path)
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path, r.Out.URL.RawPath = "http", name, path, ""
			r.SetXForwarded()
		},
		Transport: g,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return g
}

// RoundTrip implements http.RoundTripper: the host of a request is the name of a machine. Downloads
// have separate connections.
func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	to := g.guests[r.URL.Host]
	g.mu.Unlock()
	switch {
	case to == nil:
		return nil, fmt.Errorf("the machine %q is away", r.URL.Host)
	case strings.HasPrefix(r.URL.Path, "/library/"):
		return to.downloads.RoundTrip(r)
	default:
		return to.usual.RoundTrip(r)
	}
}

// split returns the name of a machine and the path on it, of a path such as /hermit/library/7.
func split(path string) (name, rest string) {
	name, rest, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name, "/" + rest
}

// serve accepts machines at ln, and visitors at front, until ctx ends.
func (g *gateway) serve(ctx context.Context, ln wire.Listener, front net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	node := asterisque.NewNode(
		asterisque.WithID("public"), asterisque.WithService(g.service()),
		asterisque.WithHooks(asterisque.Hooks{SessionEnded: func(s *asterisque.Session, _ error) { g.remove(s) }}),
	)
	defer node.Close()
	server, served := &http.Server{Handler: g.proxy}, make(chan error, 1)
	go func() {
		served <- server.Serve(front)
		cancel() // if it fails
	}()
	err := node.Serve(ctx, ln)
	return errors.Join(err, stop(ctx, server, served), node.Close())
}

// service has the functions for machines. Any peer that can connect can register here: a program
// for more than this process should require certificates, or credentials, in [asterisque.Access].
func (g *gateway) service() *asterisque.Service {
	s := asterisque.NewService()
	register.Handle(s, func(ctx context.Context, name string) (address string, err error) {
		if !nameable.MatchString(name) {
			return "", asterisque.ErrBadParams.Withf("%.20q is no name: take up to 20 letters and digits", name)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.guests[name] != nil {
			return "", asterisque.ErrUnavailable.Withf("there is another %q already", name)
		}
		g.guests[name] = newGuest(asterisque.SessionOf(ctx))
		address = g.address + name + "/"
		g.t.tell("public", "%q is there, and stands open at %s", name, address)
		return address, nil
	})
	leave.Handle(s, func(ctx context.Context, _ struct{}) (struct{}, error) {
		g.remove(asterisque.SessionOf(ctx))
		return struct{}{}, nil
	})
	return s
}

// nameable is the name of a machine.
var nameable = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// remove removes the machine of a session, if that has one, and closes the unused connections.
func (g *gateway) remove(s *asterisque.Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, it := range g.guests {
		if it.session == s {
			delete(g.guests, name)
			it.usual.CloseIdleConnections()
			it.downloads.CloseIdleConnections()
			g.t.tell("public", "%q is gone", name)
		}
	}
}
