package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// natsImpl returns NATS by itself, with its server in this process, as it is for this library over
// NATS: a call is a request and its reply, and a stream is a series of messages to a subject with
// one subscriber. NATS has no flow control, and drops messages beyond its limits: so its server and
// the subscriber have no limits here, and the subscriber, which is in the same process, allows the
// sender 8 MiB in flight. Each message passes a server, which is why NATS is measured only if -impl
// asks for it.
func natsImpl() *impl {
	return &impl{name: "nats", extra: true, link: (*natsLink)(nil), kinds: []streamKind{messages, bulk}, listen: natsListen}
}

// natsServer starts a NATS server on loopback.
func natsServer() (*server.Server, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, MaxPending: math.MaxInt32})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("the NATS server does not start")
	}
	return s, nil
}

const natsEcho = "echo"

type natsHost struct {
	server  *server.Server
	there   *nats.Conn
	streams atomic.Uint64 // opened; numbers them
}

func natsListen(context.Context, needs) (host, error) {
	s, err := natsServer()
	if err != nil {
		return nil, err
	}
	h := &natsHost{server: s}
	if h.there, err = nats.Connect(s.ClientURL()); err == nil {
		_, err = h.there.Subscribe(natsEcho, func(m *nats.Msg) { m.Respond(m.Data) })
	}
	if err == nil {
		err = h.there.Flush()
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *natsHost) dial(context.Context) (link, error) {
	nc, err := nats.Connect(h.server.ClientURL())
	if err != nil {
		return nil, err
	}
	return &natsLink{h, nc}, nil
}

func (h *natsHost) close() {
	h.there.Close()
	h.server.Shutdown()
	h.server.WaitForShutdown()
}

type natsLink struct {
	h  *natsHost
	nc *nats.Conn
}

func (l *natsLink) close() { l.nc.Close() }

func (l *natsLink) newCaller(request []byte, _ bool) (op, error) {
	return func() error {
		m, err := l.nc.Request(natsEcho, request, time.Minute)
		if err != nil {
			return err
		}
		return echoed(m.Data, request)
	}, nil
}

// natsUnderWay is how many bytes a sender has in flight.
const natsUnderWay = 8 << 20

// open makes the accepting side count the bytes at a subject, until a message asks for the sum.
func (l *natsLink) open(kind streamKind) (sender, error) {
	places := natsUnderWay / bulkWrite
	if kind == messages {
		places = natsUnderWay / (1 << 10)
	}
	s := &natsSender{nc: l.nc, subject: fmt.Sprintf("stream.%d", l.h.streams.Add(1)), places: make(chan struct{}, places)}
	var count uint64
	var err error
	s.sub, err = l.h.there.Subscribe(s.subject, func(m *nats.Msg) {
		if m.Reply != "" {
			m.Respond(countBytes(count))
			return
		}
		count += uint64(len(m.Data))
		<-s.places
	})
	if err != nil {
		return nil, err
	}
	return s, errors.Join(s.sub.SetPendingLimits(-1, -1), l.h.there.Flush())
}

type natsSender struct {
	nc      *nats.Conn
	subject string
	sub     *nats.Subscription
	places  chan struct{} // one is taken by each message in flight
}

func (s *natsSender) send(b []byte) error {
	s.places <- struct{}{}
	return s.nc.Publish(s.subject, b)
}

func (s *natsSender) finish() (int64, error) {
	m, err := s.nc.Request(s.subject, nil, time.Minute)
	if err != nil {
		return 0, err
	}
	if err := s.sub.Unsubscribe(); err != nil {
		return 0, err
	}
	return countOf(m.Data)
}
