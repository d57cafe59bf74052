package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ttrpcImpl returns containerd/ttrpc. It has no choice of codecs: bytes travel in protobuf's
// smallest message for them. Its streams have no flow control: when a reader stops for a second,
// messages are dropped, so a workload beside a stuck stream cannot be measured.
func ttrpcImpl() *impl {
	return &impl{name: "ttrpc", link: (*ttrpcLink)(nil), kinds: []streamKind{messages, bulk, background, idle}, listen: ttrpcListen}
}

const ttrpcService = "bench"

// ttrpcMethods are the names of the methods with streams.
var ttrpcMethods = map[streamKind]string{messages: "sink", bulk: "sink", background: "sink", stuck: "stuck", idle: "idle"}

type ttrpcHost struct {
	server *ttrpc.Server
	addr   string
	// of the context of the server's connections: Close leaves some of them
	cancel context.CancelFunc
	served chan struct{}
}

func ttrpcListen(ctx context.Context, n needs) (host, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		ln.Close()
		return nil, err
	}
	h := &ttrpcHost{server: server, addr: ln.Addr().String(), served: make(chan struct{})}
	server.RegisterService(ttrpcService, ttrpcDesc(n.arrived))
	ctx, h.cancel = context.WithCancel(ctx)
	go func() { // ends with the server
		defer close(h.served)
		server.Serve(ctx, ln)
	}()
	return h, nil
}

func ttrpcDesc(arrived *atomic.Int64) *ttrpc.ServiceDesc {
	takes := func(h ttrpc.StreamHandler) ttrpc.Stream { return ttrpc.Stream{Handler: h, StreamingClient: true} }
	return &ttrpc.ServiceDesc{
		Methods: map[string]ttrpc.Method{
			"echo":   ttrpcEcho[wrapperspb.BytesValue],
			"struct": ttrpcEcho[typepb.Field],
		},
		Streams: map[string]ttrpc.Stream{
			"sink": takes(ttrpcSink),
			"stuck": takes(func(ctx context.Context, _ ttrpc.StreamServer) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}),
			"idle": takes(func(ctx context.Context, _ ttrpc.StreamServer) (any, error) {
				arrived.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			}),
		},
	}
}

func ttrpcEcho[T any](_ context.Context, decode func(any) error) (any, error) {
	in := new(T)
	err := decode(in)
	return in, err
}

// ttrpcSink reads a stream to its end and returns the number of bytes.
func ttrpcSink(_ context.Context, s ttrpc.StreamServer) (any, error) {
	var in wrapperspb.BytesValue
	var n uint64
	for {
		err := s.RecvMsg(&in)
		if errors.Is(err, io.EOF) {
			return wrapperspb.Bytes(countBytes(n)), nil
		}
		if err != nil {
			return nil, err
		}
		n += uint64(len(in.Value))
	}
}

func (h *ttrpcHost) dial(context.Context) (link, error) {
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		return nil, err
	}
	return &ttrpcLink{ttrpc.NewClient(c)}, nil
}

func (h *ttrpcHost) close() {
	h.server.Close()
	h.cancel()
	<-h.served
}

type ttrpcLink struct{ c *ttrpc.Client }

func (l *ttrpcLink) close() { l.c.Close() }

func (l *ttrpcLink) newCaller(request []byte, _ bool) (op, error) {
	in := wrapperspb.Bytes(request)
	return func() error {
		var out wrapperspb.BytesValue
		if err := l.c.Call(context.Background(), ttrpcService, "echo", in, &out); err != nil {
			return err
		}
		return echoed(out.Value, request)
	}, nil
}

func (l *ttrpcLink) newStructCaller() (op, error) {
	in := sampleProto()
	return func() error {
		var out typepb.Field
		if err := l.c.Call(context.Background(), ttrpcService, "struct", in, &out); err != nil {
			return err
		}
		return checkField(out.Number, out.Name)
	}, nil
}

func (l *ttrpcLink) open(kind streamKind) (sender, error) {
	s, err := l.c.NewStream(context.Background(), &ttrpc.StreamDesc{StreamingClient: true}, ttrpcService, ttrpcMethods[kind], nil)
	return &ttrpcSender{s: s}, err
}

type ttrpcSender struct {
	s   ttrpc.ClientStream
	msg wrapperspb.BytesValue
}

func (s *ttrpcSender) send(b []byte) error {
	s.msg.Value = b
	return s.s.SendMsg(&s.msg)
}

func (s *ttrpcSender) finish() (int64, error) {
	if err := s.s.CloseSend(); err != nil {
		return 0, err
	}
	var out wrapperspb.BytesValue
	if err := s.s.RecvMsg(&out); err != nil {
		return 0, err
	}
	return countOf(out.Value)
}
