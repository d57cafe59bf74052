package pool

import (
	"log/slog"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Server describes the state of one server in a Pool. It implements slog.LogValuer.
type Server struct {
	// as yielded by the Resolver: it may contain a password
	URL       string
	Connected bool // there is a connection, or an attempt to make one
	// it takes calls
	Ready bool
	// it has not reported that it does not serve: see Config.Health
	Serving     bool
	Outstanding int                           // running calls and streams on it
	Latency     time.Duration                 // recent latency of calls; 0: unknown
	RestsUntil  time.Time                     // end of its rest; zero if it does not rest
	Outage      *asterisque.NotConnectedError // why there is no session; nil if there is one
}

// Servers returns all servers of the Resolver's set, in the order of their URLs.
func (p *Pool) Servers() []Server {
	m, now := &p.members, time.Now()
	urls := m.sorted()
	list := make([]Server, len(urls))
	for i, url := range urls {
		m.mu.Lock()
		s := m.connected[url]
		m.mu.Unlock()
		list[i] = Server{URL: url, Serving: true}
		if s != nil {
			s.fill(&list[i], now)
		}
	}
	return list
}

// fill sets the fields of a server with a connection.
func (s *server) fill(v *Server, now time.Time) {
	v.Connected, v.Ready, v.Serving = true, s.takes(), !s.unwell.Load()
	v.Outstanding, v.Latency = int(s.load.outstanding.Load()), time.Duration(s.load.expected(now))
	v.RestsUntil, v.Outage = s.ejector.rested(now), s.conn.Outage()
}

// LogValue implements slog.LogValuer. It leaves out passwords.
func (s Server) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", transport.ShowURL(s.URL)), slog.Bool("ready", s.Ready),
		slog.Bool("serving", s.Serving), slog.Int("outstanding", s.Outstanding), slog.Duration("latency", s.Latency))
}

// sorted returns the URLs of all servers in order.
func (m *members) sorted() []string {
	urls := slices.Clone(m.known())
	slices.Sort(urls)
	return urls
}

// name returns the URL of the server without its password.
func (s *server) name() string { return transport.ShowURL(s.address.URL) }
