package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/typepb"
)

// grpcImpl returns grpc-go with a codec that passes bytes through, larger buffers, goroutines that
// are kept for the next call, and fixed windows, which need no estimation. Service and methods are
// as from its generator.
func grpcImpl() *impl {
	return &impl{name: "grpc", link: (*grpcLink)(nil), listen: func(_ context.Context, n needs) (host, error) {
		server, client := grpcTuned()
		return grpcListen(n, server, client)
	}}
}

// grpcDefaultsImpl returns grpc-go with its defaults, which estimate the capacity of the path. Only
// messages may be larger.
func grpcDefaultsImpl() *impl {
	return wide(&impl{name: "grpc-defaults", link: (*grpcLink)(nil), listen: func(_ context.Context, n needs) (host, error) {
		return grpcListen(n, []grpc.ServerOption{grpc.MaxRecvMsgSize(2 * wideWindow)}, nil)
	}})
}

const (
	grpcWindow     = 1 << 20 // of a stream
	grpcConnWindow = 8 << 20
	grpcBuffer     = 128 << 10
)

// grpcMethods are the names of the methods with streams.
var grpcMethods = map[streamKind]string{messages: "/bench/sink", bulk: "/bench/sink", background: "/bench/sink", large: "/bench/sink", stuck: "/bench/stuck", idle: "/bench/idle"}

// rawFrame is a message of bytes. It owns data, until Marshal passes it on or free is called.
type rawFrame struct{ data mem.BufferSlice }

func (f *rawFrame) free() {
	f.data.Free()
	f.data = nil
}

// rawCodec is a codec for rawFrames.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*rawFrame)
	if !ok {
		return nil, fmt.Errorf("want a rawFrame, got %T", v)
	}
	data := f.data
	f.data = nil
	return data, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*rawFrame)
	if !ok {
		return fmt.Errorf("want a rawFrame, got %T", v)
	}
	f.free()
	data.Ref()
	f.data = data
	return nil
}

type grpcHost struct {
	server *grpc.Server
	addr   string
	opts   []grpc.DialOption
	served chan struct{}
}

// grpcTuned returns options that are faster on the loopback interface.
func grpcTuned() ([]grpc.ServerOption, []grpc.DialOption) {
	return []grpc.ServerOption{
			grpc.StaticStreamWindowSize(grpcWindow), grpc.StaticConnWindowSize(grpcConnWindow),
			grpc.ReadBufferSize(grpcBuffer), grpc.WriteBufferSize(grpcBuffer),
			grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))),
		}, []grpc.DialOption{
			grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
			grpc.WithStaticStreamWindowSize(grpcWindow), grpc.WithStaticConnWindowSize(grpcConnWindow),
			grpc.WithReadBufferSize(grpcBuffer), grpc.WithWriteBufferSize(grpcBuffer),
		}
}

func grpcListen(n needs, server []grpc.ServerOption, client []grpc.DialOption) (host, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr, err := n.path.tcp(ln.Addr().String())
	if err != nil {
		ln.Close()
		return nil, err
	}
	if n.path != nil {
		client = append(client, grpc.WithContextDialer(n.path.dial))
	}
	client = append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if !n.typed {
		server = append(server, grpc.ForceServerCodecV2(rawCodec{}))
		client = append(client, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	}
	h := &grpcHost{server: grpc.NewServer(server...), addr: addr, opts: client, served: make(chan struct{})}
	h.server.RegisterService(grpcService(n), nil)
	go func() { // ends with the server
		defer close(h.served)
		h.server.Serve(ln)
	}()
	return h, nil
}

func grpcService(n needs) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "bench",
		Methods: []grpc.MethodDesc{
			{MethodName: "echo", Handler: grpcEcho[rawFrame]},
			{MethodName: "struct", Handler: grpcEcho[typepb.Field]},
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "sink", ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
				return grpcSink(s, n.meter.stream())
			}},
			{StreamName: "answer", ClientStreams: true, ServerStreams: true, Handler: grpcAnswer},
			{StreamName: "stuck", ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
				<-s.Context().Done()
				return nil
			}},
			{StreamName: "idle", ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
				n.arrived.Add(1)
				return s.RecvMsg(new(rawFrame))
			}},
		},
	}
}

func grpcEcho[T any](_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(T)
	err := decode(in)
	return in, err
}

// grpcAnswer sends back the message that a stream has.
func grpcAnswer(_ any, s grpc.ServerStream) error {
	var f rawFrame
	if err := s.RecvMsg(&f); err != nil {
		return err
	}
	return s.SendMsg(&f)
}

// grpcSink reads a stream to its end and returns the number of bytes. It also counts them in count.
func grpcSink(s grpc.ServerStream, count *atomic.Int64) error {
	var f rawFrame
	var n uint64
	for {
		err := s.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		n += uint64(f.data.Len())
		count.Add(int64(f.data.Len()))
	}
	f.free()
	return s.SendMsg(&rawFrame{mem.BufferSlice{mem.SliceBuffer(countBytes(n))}})
}

func (h *grpcHost) dial(context.Context) (link, error) {
	c, err := grpc.NewClient("passthrough:///"+h.addr, h.opts...)
	return &grpcLink{c}, err
}

func (h *grpcHost) close() {
	h.server.Stop()
	<-h.served
}

type grpcLink struct{ c *grpc.ClientConn }

func (l *grpcLink) close() { l.c.Close() }

func (l *grpcLink) newCaller(request []byte, _ bool) (op, error) {
	pool := mem.DefaultBufferPool()
	return func() error {
		var out rawFrame
		if err := l.c.Invoke(context.Background(), "/bench/echo", &rawFrame{mem.BufferSlice{mem.SliceBuffer(request)}}, &out); err != nil {
			return err
		}
		defer out.free()
		reply := out.data.MaterializeToBuffer(pool)
		defer reply.Free()
		return echoed(reply.ReadOnlyData(), request)
	}, nil
}

func (l *grpcLink) newStructCaller() (op, error) {
	in := sampleProto()
	return func() error {
		var out typepb.Field
		if err := l.c.Invoke(context.Background(), "/bench/struct", in, &out); err != nil {
			return err
		}
		return checkField(out.Number, out.Name)
	}, nil
}

func (l *grpcLink) ask(request []byte) (first time.Duration, err error) {
	begin := time.Now()
	s, err := l.c.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/bench/answer")
	if err != nil {
		return 0, err
	}
	if err := s.SendMsg(&rawFrame{mem.BufferSlice{mem.SliceBuffer(request)}}); err != nil {
		return 0, err
	}
	var out rawFrame
	if err := s.RecvMsg(&out); err != nil {
		return 0, err
	}
	out.free()
	first = time.Since(begin)
	if err := s.RecvMsg(&out); !errors.Is(err, io.EOF) {
		return first, err
	}
	return first, nil
}

func (l *grpcLink) open(kind streamKind) (sender, error) {
	s, err := l.c.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true}, grpcMethods[kind])
	return grpcSender{s}, err
}

type grpcSender struct{ s grpc.ClientStream }

func (s grpcSender) send(b []byte) error {
	err := s.s.SendMsg(&rawFrame{mem.BufferSlice{mem.SliceBuffer(b)}})
	if errors.Is(err, io.EOF) { // receiving returns the cause
		return s.s.RecvMsg(new(rawFrame))
	}
	return err
}

func (s grpcSender) finish() (int64, error) {
	if err := s.s.CloseSend(); err != nil {
		return 0, err
	}
	var out rawFrame
	if err := s.s.RecvMsg(&out); err != nil {
		return 0, err
	}
	defer out.free()
	return countOf(out.data.Materialize())
}
