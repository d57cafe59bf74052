package pool

import (
	"log/slog"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Server says what the Pool knows of one server. As a slog.LogValuer it logs.
type Server struct {
	URL         string             // as the Resolver names it: it may have a password
	Connected   bool               // there is a connection, or one is being made
	Ready       bool               // it takes calls
	Serving     bool               // it has not said that it does not serve: see Config.Health
	Outstanding int                // calls and streams under way there
	Latency     time.Duration      // how long some calls have taken of late; 0: unknown
	RestsUntil  time.Time          // when it gets a call again; zero if it does not rest
	Outage      *asterisque.Outage // why there is no session; nil if there is one
}

// Servers returns all servers that the Resolver names, in the order of their URLs.
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

// fill fills in what is known of a server with a connection.
func (s *server) fill(v *Server, now time.Time) {
	v.Connected, v.Ready, v.Serving = true, s.takes(), !s.unwell.Load()
	v.Outstanding, v.Latency = int(s.load.outstanding.Load()), time.Duration(s.load.expected(now))
	v.RestsUntil, v.Outage = s.rests.rested(now), s.conn.Outage()
}

// LogValue implements slog.LogValuer. It leaves out passwords.
func (s Server) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", transport.ShowURL(s.URL)), slog.Bool("ready", s.Ready),
		slog.Bool("serving", s.Serving), slog.Int("outstanding", s.Outstanding), slog.Duration("latency", s.Latency))
}

// sorted returns the URLs of all servers in their order.
func (m *members) sorted() []string {
	urls := slices.Clone(m.known())
	slices.Sort(urls)
	return urls
}

// name is for people.
func (s *server) name() string { return transport.ShowURL(s.address.URL) }
