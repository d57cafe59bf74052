package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/cluster/broker"
)

// servers are the NATS servers.
type servers interface {
	fmt.Stringer

	// trouble returns their simulated faults.
	trouble(lasts time.Duration) trouble
	close(ctx context.Context) error
}

// startServers starts one server in this process, or three in separate processes, and returns their
// addresses for clients.
func startServers(ctx context.Context, o *options, fail func(error)) (servers, string, error) {
	if o.servers == 1 {
		one, err := startOne(o)
		if err != nil {
			return nil, "", err
		}
		return one, one.broker.URL(), nil
	}
	three, err := startThree(ctx, o, fail)
	if err != nil {
		return nil, "", errors.Join(err, three.close(ctx))
	}
	return three, three.urls(), nil
}

// oneServer runs in this process, and can be restarted at the same address, with all its data.
type oneServer struct {
	dir, addr string // these are fixed
	broker    *broker.Broker
}

func startOne(o *options) (*oneServer, error) {
	one := &oneServer{dir: filepath.Join(o.dir, "nats"), addr: o.listen}
	if err := one.start(); err != nil {
		return nil, err
	}
	one.addr = strings.TrimPrefix(one.broker.URL(), "nats://")
	return one, nil
}

func (s *oneServer) start() (err error) {
	s.broker, err = broker.Start(broker.Config{Addr: s.addr, Dir: s.dir})
	return err
}

func (s *oneServer) trouble(lasts time.Duration) trouble {
	return trouble{
		begins: "NATS is stopped: direct sessions go on", ends: "NATS is started again",
		begin: func(context.Context) error { return s.broker.Close() },
		mend:  func(context.Context) error { return s.start() },
		lasts: lasts,
	}
}

func (s *oneServer) close(context.Context) error { return s.broker.Close() }

// String describes the servers.
func (s *oneServer) String() string { return "NATS is in this process, at " + s.addr }

// threeServers are processes. They can be restarted.
type threeServers struct {
	dir    string // these are fixed
	fail   func(error)
	listen []string
	routes []string

	all [3]*process
}

func startThree(ctx context.Context, o *options, fail func(error)) (*threeServers, error) {
	s := &threeServers{dir: o.dir, fail: fail}
	addrs, err := freeAddrs(2 * len(s.all))
	if err != nil {
		return s, err
	}
	s.listen, s.routes = addrs[:len(s.all)], addrs[len(s.all):]
	for n := range s.all {
		if err := s.start(ctx, n); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *threeServers) start(ctx context.Context, n int) error {
	name := "nats-" + string(rune('a'+n))
	p, err := startProcess(ctx, name, s.fail, "-part", "nats", "-id", name, "-dir", filepath.Join(s.dir, name),
		"-listen", s.listen[n], "-at", s.routes[n], "-routes", strings.Join(s.routes, ","))
	if err == nil {
		s.all[n] = p
	}
	return err
}

func (s *threeServers) trouble(lasts time.Duration) trouble {
	return trouble{
		begins: "kill -9 of " + s.all[0].name + ": two are left", ends: s.all[0].name + " is started again",
		begin: func(context.Context) error { s.all[0].kill(); return nil },
		mend:  func(ctx context.Context) error { return s.start(ctx, 0) },
		lasts: lasts,
	}
}

func (s *threeServers) close(ctx context.Context) (err error) {
	for _, p := range s.all {
		if p != nil {
			err = errors.Join(err, p.stop(ctx))
		}
	}
	return err
}

func (s *threeServers) urls() string {
	return "nats://" + strings.Join(s.listen, ",nats://")
}

// String describes the servers.
func (s *threeServers) String() string {
	return "NATS is three processes, at " + strings.Join(s.listen, ", ")
}

// freeAddrs returns free addresses: the servers have to know those of each other before they start.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs, nil
}
