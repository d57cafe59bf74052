package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/msgpack"
	"github.com/asterisque-go/asterisque/wire"
)

// Limits of both sides, low enough for the cases to reach them.
const (
	workers = 64
	waiting = 192 // calls; more are refused
)

// codecs are the values of -codec. The classic protocol has its own; by default, a dialling side
// uses the first.
var (
	codecs        = map[string]codec.Values{"cbor": codec.CBOR, "json": codec.JSON, "raw": codec.Raw, "msgpack": msgpack.Values}
	classicCodecs = []codec.Values{classic.MessagePack, classic.Simple}
)

func init() {
	for _, c := range classicCodecs {
		codecs[c.Name()] = c
	}
}

// carries reports whether a scheme supports a codec, or any codec if the name is empty.
func carries(scheme, codecName string) bool {
	return codecName == "" || isClassic(scheme+":") == strings.HasPrefix(codecName, "classic-")
}

// options are those of both sides. Without a codec name all codecs are offered.
func options(id, url, codecName string, cfg *tls.Config, svc *asterisque.Service) []asterisque.Option {
	opts := []asterisque.Option{
		asterisque.WithID(id), asterisque.WithService(svc), asterisque.WithTLS(cfg),
		asterisque.WithWorkers(asterisque.Workers{Session: workers, Waiting: waiting}),
	}
	switch {
	case codecName != "":
		opts = append(opts, asterisque.WithCodecs(codecs[codecName]))
	case isClassic(url):
		opts = append(opts, asterisque.WithCodecs(classicCodecs...))
	default:
		opts = append(opts, asterisque.WithCodecs(codec.CBOR, codec.JSON, codec.Raw, msgpack.Values))
	}
	return opts
}

// visit dials a URL, runs the matrix over the session, and closes it. The error is that of the
// dial.
func visit(ctx context.Context, url, codecName string, calls int, cfg *tls.Config, tell func(result)) (failed int, err error) {
	opts := options("interop client", url, codecName, cfg, newService())
	node := asterisque.NewNode(append(opts, asterisque.WithTimeouts(asterisque.Timeouts{Ping: 20 * time.Millisecond, Silence: time.Minute}))...)
	defer node.Close()
	sess, err := node.Dial(ctx, url)
	if err != nil {
		return 0, err
	}
	c := &caller{Session: sess, codec: codecName, classic: isClassic(url)}
	switch {
	case c.codec != "":
	case c.classic:
		c.codec = classicCodecs[0].Name()
	default:
		c.codec = "cbor" // which is offered first
	}
	failed = runMatrix(ctx, c, calls, tell)
	return failed, node.Shutdown(ctx)
}

// server is the listening side.
type server struct {
	ln   wire.Listener
	node *asterisque.Node
	svc  *asterisque.Service

	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// listen begins to listen at a URL.
func listen(ctx context.Context, url, codecName string, cfg *tls.Config, out io.Writer, more ...asterisque.Option) (*server, error) {
	ln, err := wire.Listen(ctx, url, wire.Options{TLS: cfg})
	if err != nil {
		return nil, err
	}
	s := &server{ln: ln, svc: newService(), out: out}
	s.node = asterisque.NewNode(append(options("interop server", url, codecName, cfg, s.svc), more...)...)
	s.tell("listens at %s", ln.URL())
	return s, nil
}

// serve serves until ctx ends, or until the first session has ended, and then reports the served
// functions.
func (s *server) serve(ctx context.Context, once bool) (err error) {
	if once {
		err = s.serveOne(ctx)
	} else {
		err = s.node.Serve(ctx, s.ln)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	err = errors.Join(err, s.node.Shutdown(ctx))
	s.tell("served %s", served(s.svc))
	return err
}

// serveOne serves the first connection only, as Serve does each.
func (s *server) serveOne(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.ln.Close() })
	defer stop()
	defer s.ln.Close()
	w, err := s.ln.Accept()
	if errors.Is(err, net.ErrClosed) {
		return nil // ctx ended first
	}
	if err != nil {
		return err
	}
	sess, err := s.node.Accept(ctx, w)
	if err != nil {
		return err
	}
	select {
	case <-sess.Done():
		s.tell("ended: %v", sess.Err())
	case <-ctx.Done():
	}
	return nil
}

func (s *server) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}
