// Package broker is a NATS server with JetStream within a program, for package cluster: for
// programs without any set-up, for examples and for tests. In production a separate NATS cluster,
// which outlives each program, is the better choice. Several brokers that list each other as
// [Config].Routes form a NATS cluster, too.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// Config configures a [Broker]. The zero value is a single server at a free port of 127.0.0.1,
// which loses its data when it is closed.
type Config struct {
	// Addr is the address for clients, as host:port. Empty is a free port of 127.0.0.1.
	Addr string

	// Dir is the folder for JetStream's persistent data. It is created if it does not exist, and
	// belongs to one server at a time. Empty is a temporary folder, which Close removes.
	Dir string

	// Name identifies the server within its NATS cluster. Empty is a random one.
	Name string

	// Routes are the addresses at which the servers of a NATS cluster listen for each other, as
	// host:port, including At, the address of this one. A cluster has three or five servers, and
	// works while more than half of them are up. They trust each other: At must not be reachable
	// for untrusted clients.
	Routes []string
	At     string

	// ConfigFile is a configuration file of nats-server, for example with accounts and permissions.
	// The fields above override its settings. It may be empty.
	ConfigFile string

	// Change, if not nil, may change the options of the server before it starts.
	Change func(o *server.Options)
}

// Broker is a NATS server that runs within this program; with [StartLocal] it may also run in
// another one. Its methods are safe for concurrent use.
type Broker struct {
	server *server.Server // fixed; nil: a server of another program
	url    string         // fixed
	remove string         // fixed; a folder to remove at the end, or empty
	close  sync.Once
}

// localAddr is the address of the NATS server of this machine.
const localAddr = "127.0.0.1:4222"

// StartLocal starts the NATS server of this machine at 127.0.0.1:4222, the default address of the
// nodes of a cluster. If a server listens there, StartLocal returns a Broker for it, with a URL,
// and without a Server. Otherwise it is [Start]: other programs may use the server, which ends with
// Close. Of several programs that call StartLocal at once, one starts the server.
func StartLocal() (*Broker, error) { return startLocal(localAddr) }

func startLocal(addr string) (*Broker, error) {
	b, err := Start(Config{Addr: addr})
	if err == nil {
		return b, nil
	}
	for range 20 { // the server of another program may be about to start
		if speaksNATS(addr) {
			return &Broker{url: "nats://" + addr}, nil
		}
		wait.Sleep(context.Background(), startTime/100)
	}
	return nil, err
}

// speaksNATS reports whether a NATS server listens at an address. Such a server speaks first.
func speaksNATS(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, startTime/100)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(startTime / 10))
	hello := make([]byte, len("INFO "))
	_, err = io.ReadFull(conn, hello)
	return err == nil && string(hello) == "INFO "
}

// startTime is the time limit for the server to accept connections. A server of a NATS cluster does
// not wait for the other servers.
const startTime = 20 * time.Second

// Start starts a server and waits until it accepts connections, up to 20 seconds. In a NATS cluster
// JetStream works once more than half of the servers are connected, which Start does not wait for.
// The server ends with Close. The error reports an invalid c, or why the server cannot listen.
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
			b.url = s.ClientURL()
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

// fatal is a logger that receives the reason why the server fails, which the server only logs.
type fatal chan error

func (f fatal) Fatalf(format string, v ...any) {
	select {
	case f <- fmt.Errorf(format, v...):
	default: // the first reason counts
	}
}

func (fatal) Noticef(string, ...any) {}
func (fatal) Warnf(string, ...any)   {}
func (fatal) Errorf(string, ...any)  {}
func (fatal) Debugf(string, ...any)  {}
func (fatal) Tracef(string, ...any)  {}

// listenAt sets the address for clients.
func (c Config) listenAt(o *server.Options) error {
	addr := c.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, port, err := split(addr)
	if err != nil {
		return err
	}
	// avoids most failed starts
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

// join sets the addresses of the NATS cluster.
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

// URL returns the URL for clients, such as "nats://127.0.0.1:4222".
func (b *Broker) URL() string { return b.url }

// Server returns the underlying server of the nats-server library, or nil if StartLocal has found a
// server of another program.
func (b *Broker) Server() *server.Server { return b.server }

// Close stops the server, and waits until it has stopped. It does not stop a server of another
// program. The data in Config.Dir stays. Repeated calls have no effect.
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
