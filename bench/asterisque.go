package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/wire"
	_ "github.com/asterisque-go/asterisque/wire/natswire"
	_ "github.com/asterisque-go/asterisque/wire/smuxwire"
	_ "github.com/asterisque-go/asterisque/wire/wswire"
)

// The contract of the benchmark.
var (
	astEcho   = asterisque.Func[[]byte, []byte](1, "echo")
	astStruct = asterisque.Func[Field, Field](2, "struct")
)

// astStreams are the numbers of the functions with streams.
var astStreams = map[streamKind]uint16{messages: 3, large: 3, bulk: 4, background: 4, stuck: 5, idle: 6}

// astAnswer is the number of the function that sends back the number of bytes it has received.
const astAnswer = 7

// overScheme returns this library over the wire of a URL scheme.
func overScheme(scheme string) *impl {
	i := &impl{name: "asterisque-" + scheme, extra: true, link: (*astLink)(nil)}
	if scheme == "tcp" {
		i.name, i.extra, i.paths = "asterisque", false, true
	}
	i.listen = func(ctx context.Context, n needs) (host, error) { return astListen(ctx, scheme, n) }
	return i
}

// wideWindows returns this library with an inbound soft limit of 64 MiB, for long paths.
func wideWindows() *impl {
	return &impl{name: "asterisque-64MiB", extra: true, paths: true, link: (*astLink)(nil), listen: func(ctx context.Context, n needs) (host, error) {
		n.soft = max(64<<20, 8*n.message)
		return astListen(ctx, "tcp", n)
	}}
}

// manyPipes has room for the windows of ten thousand handlers.
var manyPipes = limits.Limits{Soft: limits.Amount{Bytes: 128 << 20}, Hard: limits.Amount{Bytes: 512 << 20}}

type astHost struct {
	here, there *asterisque.Node
	url         string
	clean       func() // removes the resources of the URL
	cancel      context.CancelFunc
	served      chan struct{}
}

// astListen serves with codecs for values, or those of a node by default.
func astListen(ctx context.Context, scheme string, n needs, codecs ...codec.Values) (host, error) {
	url, clean, err := astURL(scheme)
	if err != nil {
		return nil, err
	}
	server, client, err := tlsConfigs()
	if err != nil {
		return nil, err
	}
	options := func(cfg *tls.Config) []asterisque.Option {
		opts := []asterisque.Option{asterisque.WithService(astService(n)), asterisque.WithTLS(cfg)}
		if n.typed && len(codecs) > 0 {
			opts = append(opts, asterisque.WithCodecs(codecs...))
		} else if !n.typed {
			opts = append(opts, asterisque.WithCodecs(codec.Raw))
		}
		if n.pipes > 0 {
			opts = append(opts, asterisque.WithWorkers(asterisque.Workers{Session: n.pipes + 1}), asterisque.WithLimits(asterisque.Limits{Inbound: manyPipes}))
		}
		if n.soft > 0 {
			opts = append(opts, asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: n.soft}}}))
		}
		if n.message > 0 {
			opts = append(opts, asterisque.WithLimits(asterisque.Limits{MaxMessage: max(n.message, 4<<20)}))
		}
		return opts
	}
	ln, err := wire.Listen(ctx, url, wire.Options{TLS: server})
	if err != nil {
		return nil, err
	}
	dial, err := astThrough(n.path, ln.URL())
	if err != nil {
		ln.Close()
		return nil, err
	}
	h := &astHost{
		here: asterisque.NewNode(options(client)...), there: asterisque.NewNode(options(server)...), url: dial, clean: clean, served: make(chan struct{}),
	}
	ctx, h.cancel = context.WithCancel(ctx)
	go func() { // ends with close
		defer close(h.served)
		h.there.Serve(ctx, ln)
	}()
	return h, nil
}

// astThrough returns the URL to dial over a path; only TCP supports paths.
func astThrough(p *path, url string) (string, error) {
	if p == nil {
		return url, nil
	}
	addr, err := p.tcp(strings.TrimPrefix(url, "tcp://"))
	return "tcp://" + addr, err
}

// astURL returns a URL to listen at, and a function for the cleanup.
func astURL(scheme string) (url string, clean func(), err error) {
	switch scheme {
	case "unix":
		dir, err := os.MkdirTemp("", "bench")
		return "unix://" + filepath.ToSlash(filepath.Join(dir, "s")), func() { os.RemoveAll(dir) }, err
	case "nats":
		s, err := natsServer()
		if err != nil {
			return "", nil, err
		}
		return s.ClientURL() + "/bench", s.Shutdown, nil
	}
	return scheme + "://127.0.0.1:0", func() {}, nil
}

func astService(n needs) *asterisque.Service {
	svc := asterisque.NewService()
	astEcho.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil }, asterisque.WithBorrowedParams())
	astStruct.Handle(svc, func(_ context.Context, f Field) (Field, error) { return f, nil })
	svc.Handle(astStreams[messages], "messages", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		var count uint64
		for {
			b, err := p.Recv(ctx)
			if errors.Is(err, io.EOF) {
				return binary.BigEndian.AppendUint64(nil, count), nil
			}
			if err != nil {
				return nil, err
			}
			count += uint64(len(b.Payload))
			b.Release()
		}
	})
	svc.Handle(astStreams[bulk], "bulk", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		count, err := drain(n.meter.reader(stream.NewReader(p)))
		return binary.BigEndian.AppendUint64(nil, uint64(count)), err
	})
	svc.Handle(astAnswer, "answer", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		b := make([]byte, n.ask)
		if _, err := io.ReadFull(stream.NewReader(p), b); err != nil {
			return nil, err
		}
		w := stream.NewWriter(p)
		_, err := w.Write(b)
		return nil, errors.Join(err, w.Close())
	})
	svc.Handle(astStreams[stuck], "stuck", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	svc.Handle(astStreams[idle], "idle", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		n.arrived.Add(1)
		_, err := p.Recv(ctx)
		return nil, err
	})
	return svc
}

func (h *astHost) dial(ctx context.Context) (link, error) {
	s, err := h.here.Dial(ctx, h.url)
	if err != nil {
		return nil, err
	}
	return &astLink{h, s}, nil
}

func (h *astHost) close() {
	h.cancel()
	h.here.Close()
	h.there.Close()
	<-h.served
	h.clean()
}

type astLink struct {
	h *astHost
	s *asterisque.Session
}

func (l *astLink) close() { l.s.Close() }

func (l *astLink) newCaller(request []byte, urgent bool) (op, error) {
	if urgent {
		return astCall(l.s, request, asterisque.WithPriority(priority.Max)), nil
	}
	return astCall(l.s, request), nil
}

// largeResult is the size, in bytes, from which a buffer of the caller for the result is cheaper
// than new memory: an option costs an allocation.
const largeResult = 1 << 10

func astCall(s *asterisque.Session, request []byte, opts ...asterisque.CallOption) op {
	if len(request) >= largeResult {
		opts = append(opts, asterisque.WithResultBuffer(make([]byte, len(request))))
	}
	return func() error {
		reply, err := astEcho.Call(context.Background(), s, request, opts...)
		if err != nil {
			return err
		}
		return echoed(reply, request)
	}
}

func (l *astLink) newBackCaller(request []byte) (op, error) {
	sessions := l.h.there.Sessions()
	if len(sessions) != 1 {
		return nil, fmt.Errorf("there are %d sessions to call back on", len(sessions))
	}
	return astCall(sessions[0], request), nil
}

func (l *astLink) newStructCaller() (op, error) {
	return func() error {
		reply, err := astStruct.Call(context.Background(), l.s, sampleField)
		if err != nil {
			return err
		}
		return checkField(reply.Number, reply.Name)
	}, nil
}

func (l *astLink) open(kind streamKind) (sender, error) {
	var opts []asterisque.CallOption
	if kind == background || kind == large {
		opts = append(opts, asterisque.WithPriority(priority.Min))
	}
	p, err := l.s.Open(context.Background(), astStreams[kind], nil, opts...)
	if err != nil {
		return nil, err
	}
	if kind == messages || kind == large || kind == idle {
		return astMessages{p}, nil
	}
	return astBytes{p, stream.NewWriter(p)}, nil
}

func (l *astLink) ask(request []byte) (first time.Duration, err error) {
	begin := time.Now()
	p, err := l.s.Open(context.Background(), astAnswer, nil)
	if err != nil {
		return 0, err
	}
	w := stream.NewWriter(p)
	if _, err := w.Write(request); err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	if first, err = firstByte(stream.NewReader(p), begin, len(request)); err != nil {
		return 0, err
	}
	_, err = p.Result(context.Background())
	return first, err
}

// astMessages sends each message as a Block.
type astMessages struct{ p *pipe.Pipe }

func (s astMessages) send(b []byte) error { return s.p.Send(context.Background(), b) }

func (s astMessages) finish() (int64, error) {
	if err := s.p.CloseSend(); err != nil {
		return 0, err
	}
	return astCount(s.p)
}

// astBytes sends bytes.
type astBytes struct {
	p *pipe.Pipe
	w *stream.Writer
}

func (s astBytes) send(b []byte) error {
	_, err := s.w.Write(b)
	return err
}

func (s astBytes) finish() (int64, error) {
	if err := s.w.Close(); err != nil {
		return 0, err
	}
	return astCount(s.p)
}

// astCount returns the count of bytes from the handler.
func astCount(p *pipe.Pipe) (int64, error) {
	b, err := p.Result(context.Background())
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}
