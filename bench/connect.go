package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/typepb"
)

// connectImpl returns connect-go over HTTP/2 without TLS, with its default connect protocol,
// without the default compression, with a codec that passes bytes through. HTTP/2 has larger
// windows and frames than by default, and no limit of streams that affects the workloads.
func connectImpl() *impl {
	return &impl{name: "connect-go", link: (*connectLink)(nil), listen: connectListen}
}

var connectHTTP2 = &http.HTTP2Config{
	MaxConcurrentStreams:          1 << 20,
	MaxReceiveBufferPerStream:     1 << 20,
	MaxReceiveBufferPerConnection: 8 << 20,
	MaxReadFrameSize:              64 << 10,
}

// connectMethods are the paths of the methods with streams.
var connectMethods = map[streamKind]string{messages: "/bench/sink", bulk: "/bench/sink", background: "/bench/sink", stuck: "/bench/stuck", idle: "/bench/idle"}

// connectRaw is a codec for *[]byte.
type connectRaw struct{}

func (connectRaw) Name() string { return "raw" }

func (connectRaw) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("want bytes, got %T", v)
	}
	return *b, nil
}

// MarshalAppend is preferred by connect, because connect has its own buffers.
func (connectRaw) MarshalAppend(dst []byte, v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return dst, fmt.Errorf("want bytes, got %T", v)
	}
	return append(dst, *b...), nil
}

func (connectRaw) Unmarshal(b []byte, v any) error {
	to, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("want bytes, got %T", v)
	}
	*to = append((*to)[:0], b...)
	return nil
}

type connectHost struct {
	server *http.Server
	addr   string
	typed  bool
	served chan struct{}
}

func connectListen(_ context.Context, n needs) (host, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &connectHost{addr: ln.Addr().String(), typed: n.typed, served: make(chan struct{})}
	h.server = &http.Server{Handler: connectMux(n.arrived), HTTP2: connectHTTP2, Protocols: onlyHTTP2()}
	go func() { // ends with the server
		defer close(h.served)
		h.server.Serve(ln)
	}()
	return h, nil
}

func onlyHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

func connectMux(arrived *atomic.Int64) http.Handler {
	opts := []connect.HandlerOption{connect.WithCompression("gzip", nil, nil)}
	raw := append(opts, connect.WithCodec(connectRaw{}))
	mux := http.NewServeMux()
	mux.Handle("/bench/echo", connect.NewUnaryHandler("/bench/echo", connectEcho[[]byte], raw...))
	mux.Handle("/bench/struct", connect.NewUnaryHandler("/bench/struct", connectEcho[typepb.Field], opts...))
	mux.Handle("/bench/sink", connect.NewClientStreamHandler("/bench/sink", connectSink, raw...))
	mux.Handle("/bench/stuck", connect.NewClientStreamHandler("/bench/stuck", func(ctx context.Context, _ *connectStream) (*connect.Response[[]byte], error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, raw...))
	mux.Handle("/bench/idle", connect.NewClientStreamHandler("/bench/idle", func(_ context.Context, s *connectStream) (*connect.Response[[]byte], error) {
		arrived.Add(1)
		s.Receive()
		return nil, errors.New("this stream was to stay idle")
	}, raw...))
	return mux
}

func connectEcho[T any](_ context.Context, r *connect.Request[T]) (*connect.Response[T], error) {
	return connect.NewResponse(r.Msg), nil
}

// connectStream is the receiving end of a stream.
type connectStream = connect.ClientStream[[]byte]

// connectSink reads a stream to its end and returns the number of bytes.
func connectSink(_ context.Context, s *connectStream) (*connect.Response[[]byte], error) {
	var n uint64
	for s.Receive() {
		n += uint64(len(*s.Msg()))
	}
	count := countBytes(n)
	return connect.NewResponse(&count), s.Err()
}

// dial returns a client that connects at the first call; it refuses to connect a second time.
func (h *connectHost) dial(context.Context) (link, error) {
	l := &connectLink{url: "http://" + h.addr}
	l.transport = &http.Transport{
		HTTP2: connectHTTP2, Protocols: onlyHTTP2(), DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err == nil && !l.conn.CompareAndSwap(nil, &c) {
				c.Close()
				return nil, errors.New("everything is to go over one connection")
			}
			return c, err
		},
	}
	l.client = &http.Client{Transport: l.transport}
	return l, nil
}

func (h *connectHost) close() {
	h.server.Close()
	<-h.served
}

type connectLink struct {
	client    *http.Client
	transport *http.Transport
	url       string
	conn      atomic.Pointer[net.Conn] // nil before the first call
}

func (l *connectLink) close() {
	l.transport.CloseIdleConnections()
	if c := l.conn.Load(); c != nil {
		(*c).Close() // streams may be open
	}
}

func connectClient[T any](l *connectLink, path string, opts ...connect.ClientOption) *connect.Client[T, T] {
	return connect.NewClient[T, T](l.client, l.url+path, append(opts, connect.WithAcceptCompression("gzip", nil, nil))...)
}

func (l *connectLink) newCaller(request []byte, _ bool) (op, error) {
	c := connectClient[[]byte](l, "/bench/echo", connect.WithCodec(connectRaw{}))
	return func() error {
		reply, err := c.CallUnary(context.Background(), connect.NewRequest(&request))
		if err != nil {
			return err
		}
		return echoed(*reply.Msg, request)
	}, nil
}

func (l *connectLink) newStructCaller() (op, error) {
	c, in := connectClient[typepb.Field](l, "/bench/struct"), sampleProto()
	return func() error {
		reply, err := c.CallUnary(context.Background(), connect.NewRequest(in))
		if err != nil {
			return err
		}
		return checkField(reply.Msg.Number, reply.Msg.Name)
	}, nil
}

func (l *connectLink) open(kind streamKind) (sender, error) {
	c := connectClient[[]byte](l, connectMethods[kind], connect.WithCodec(connectRaw{}))
	s := connectSender{c.CallClientStream(context.Background())}
	var err error
	if kind == idle || kind == stuck {
		err = s.s.Send(nil) // only the headers: so that the stream exists
	}
	return s, err
}

type connectSender struct {
	s *connect.ClientStreamForClient[[]byte, []byte]
}

func (s connectSender) send(b []byte) error {
	err := s.s.Send(&b)
	if errors.Is(err, io.EOF) { // receiving returns the cause
		_, err = s.s.CloseAndReceive()
	}
	return err
}

func (s connectSender) finish() (int64, error) {
	reply, err := s.s.CloseAndReceive()
	if err != nil {
		return 0, err
	}
	return countOf(*reply.Msg)
}
