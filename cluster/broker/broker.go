// Package broker is a NATS server within a program, with JetStream, as package cluster needs one:
// for programs that run without any set-up, for examples and for tests. In production a NATS
// cluster of its own, which outlives each program, is the better choice; several brokers that name
// each other as [Config].Routes are one, too.
package broker

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Config says how a [Broker] runs. The zero value is a server on its own, at a free port of
// 127.0.0.1, that forgets all when it is closed.
type Config struct {
	// Addr is where programs connect to, as host:port. Empty is a free port of 127.0.0.1.
	Addr string

	// Dir is where JetStream keeps what has to outlive the server. It is made if it is not there,
	// and belongs to one server at a time. Empty is a temporary folder, which Close removes.
	Dir string

	// Name tells the servers of a cluster apart. Empty is a random one.
	Name string

	// Routes is where the servers of the same cluster listen for each other, as host:port, this one
	// included, which is At. A cluster has three or five, and works while more than half of them
	// are there. They trust each other: At has to be out of reach for strangers.
	Routes []string
	At     string

	// ConfigFile is a configuration file of nats-server, with accounts and permissions for example.
	// What is set above takes the place of what stands there. It may be empty.
	ConfigFile string

	// Change may change the options of the server before it starts. It may be nil.
	Change func(o *server.Options)
}

// Broker is a NATS server that runs within this program. Its methods are safe for concurrent use.
type Broker struct {
	server *server.Server // fixed
	remove string         // fixed; a folder to remove at the end, or empty
	close  sync.Once
}

// startTime is how long a server may take until it accepts connections. One of a cluster does not
// wait for the others.
const startTime = 20 * time.Second

// Start starts a server and waits until programs can connect to it; up to 20 seconds. In a cluster
// JetStream works once more than half of the servers have met, which Start does not wait for. The
// server ends with Close. The error says what of c does not fit, or why nothing can listen there.
func Start(c Config) (*Broker, error) {
	b := new(Broker)
	if err := b.start(c); err != nil {
		b.Close()
		return nil, fmt.Errorf("broker: %w", err)
	}
	return b, nil
}

func (b *Broker) start(c Config) error {
	o := new(server.Options)
	if c.ConfigFile != "" {
		var err error
		if o, err = server.ProcessConfigFile(c.ConfigFile); err != nil {
			return fmt.Errorf("the configuration file %s: %w", c.ConfigFile, err)
		}
	}
	if err := c.listenAt(o); err != nil {
		return err
	}
	if err := c.join(o); err != nil {
		return err
	}
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "asterisque-broker-"); err != nil {
			return fmt.Errorf("a folder for JetStream: %w", err)
		}
		b.remove = dir
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the folder for JetStream: %w", err)
	}
	o.JetStream, o.StoreDir, o.ServerName = true, dir, c.Name
	o.NoSigs = true
	if c.Change != nil {
		c.Change(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	b.server = s
	failed := make(fatal, 1)
	s.SetLoggerV2(failed, false, false, false)
	s.Start()
	for end := time.Now().Add(startTime); time.Now().Before(end); {
		if s.ReadyForConnections(startTime / 100) {
			return nil
		}
		select {
		case err := <-failed:
			return err
		default:
		}
	}
	return fmt.Errorf("the server does not accept connections at %s", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
}

// fatal is a logger that takes why the server cannot go on, which it says in its log alone.
type fatal chan error

func (f fatal) Fatalf(format string, v ...any) {
	select {
	case f <- fmt.Errorf(format, v...):
	default: // the first one tells
	}
}

func (fatal) Noticef(string, ...any) {}
func (fatal) Warnf(string, ...any)   {}
func (fatal) Errorf(string, ...any)  {}
func (fatal) Debugf(string, ...any)  {}
func (fatal) Tracef(string, ...any)  {}

// listenAt sets where programs connect to.
func (c Config) listenAt(o *server.Options) error {
	addr := c.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, port, err := split(addr)
	if err != nil {
		return err
	}
	// mostly this saves a start in vain
	probe, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	probe.Close()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	o.Host, o.Port = host, port
	return nil
}

// join sets where the servers of a cluster meet.
func (c Config) join(o *server.Options) error {
	if len(c.Routes) == 0 && c.At == "" {
		return nil
	}
	if len(c.Routes) == 0 || c.At == "" || c.Name == "" {
		return errors.New("a server of a cluster needs a Name, Routes, and At, which is its own of these")
	}
	host, port, err := split(c.At)
	if err != nil {
		return err
	}
	o.Cluster = server.ClusterOpts{Name: "asterisque", Host: host, Port: port}
	for _, r := range c.Routes {
		if _, _, err := split(r); err != nil {
			return err
		}
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	return nil
}

func split(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 1<<16-1 {
		return "", 0, fmt.Errorf("the address %q is no host:port, such as 127.0.0.1:4222", addr)
	}
	return host, port, nil
}

// URL returns where programs connect to, such as "nats://127.0.0.1:4222".
func (b *Broker) URL() string { return b.server.ClientURL() }

// Server returns the server itself, for what package server can tell of it.
func (b *Broker) Server() *server.Server { return b.server }

// Close ends the server, and waits until that is done. What it keeps in Config.Dir stays. Repeated
// calls do nothing.
func (b *Broker) Close() error {
	var err error
	b.close.Do(func() {
		if b.server != nil {
			b.server.Shutdown()
			b.server.WaitForShutdown()
		}
		if b.remove != "" {
			err = os.RemoveAll(b.remove)
		}
	})
	return err
}
