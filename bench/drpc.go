package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/typepb"
	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmanager"
	"storj.io/drpc/drpcpool"
	"storj.io/drpc/drpcserver"
)

// drpcImpl returns storj/drpc on one connection, which carries one call or one stream at a time:
// several callers wait for each other.
func drpcImpl() *impl {
	return &impl{
		name: "drpc", link: (*drpcLink)(nil), kinds: []streamKind{messages, bulk}, streams: 1,
		listen: func(ctx context.Context, _ needs) (host, error) { return drpcListen(ctx, 1) },
	}
}

// drpcPoolImpl returns it with a connection for each concurrent call, as intended by its authors.
// It is not comparable on one connection.
func drpcPoolImpl() *impl {
	return &impl{
		name: "drpc-pool", extra: true, link: (*drpcLink)(nil), kinds: []streamKind{messages, bulk},
		listen: func(ctx context.Context, _ needs) (host, error) { return drpcListen(ctx, 1024) },
	}
}

const (
	drpcEchoCall   = "echo"
	drpcStructCall = "struct"
	drpcSinkStream = "sink"
	drpcBuffer     = 64 << 10
)

var drpcOptions = drpcmanager.Options{WriterBufferSize: drpcBuffer}

// drpcRaw passes *[]byte through.
type drpcRaw struct{}

func (drpcRaw) Marshal(m drpc.Message) ([]byte, error) { return *m.(*[]byte), nil }

func (drpcRaw) Unmarshal(b []byte, m drpc.Message) error {
	to := m.(*[]byte)
	*to = append((*to)[:0], b...)
	return nil
}

// drpcProto encodes messages of protobuf.
type drpcProto struct{}

func (drpcProto) Marshal(m drpc.Message) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }

func (drpcProto) Unmarshal(b []byte, m drpc.Message) error {
	return proto.Unmarshal(b, m.(proto.Message))
}

// drpcHandler is the service.
type drpcHandler struct{}

func (drpcHandler) HandleRPC(s drpc.Stream, rpc string) error {
	switch rpc {
	case drpcEchoCall:
		var b []byte
		if err := s.MsgRecv(&b, drpcRaw{}); err != nil {
			return err
		}
		return s.MsgSend(&b, drpcRaw{})
	case drpcStructCall:
		var f typepb.Field
		if err := s.MsgRecv(&f, drpcProto{}); err != nil {
			return err
		}
		return s.MsgSend(&f, drpcProto{})
	case drpcSinkStream:
		return drpcSink(s)
	}
	return fmt.Errorf("there is no %q", rpc)
}

// drpcSink reads a stream to its end and returns the number of bytes.
func drpcSink(s drpc.Stream) error {
	var b []byte
	var n uint64
	for {
		err := s.MsgRecv(&b, drpcRaw{})
		if errors.Is(err, io.EOF) {
			count := countBytes(n)
			return s.MsgSend(&count, drpcRaw{})
		}
		if err != nil {
			return err
		}
		n += uint64(len(b))
	}
}

type drpcHost struct {
	addr   string
	pool   int // connections of each link
	cancel context.CancelFunc
	served chan struct{}
}

func drpcListen(ctx context.Context, pool int) (host, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &drpcHost{addr: ln.Addr().String(), pool: pool, served: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(ctx)
	server := drpcserver.NewWithOptions(drpcHandler{}, drpcserver.Options{Manager: drpcOptions})
	go func() { // ends with close
		defer close(h.served)
		server.Serve(ctx, ln)
	}()
	return h, nil
}

func (h *drpcHost) dial(ctx context.Context) (link, error) {
	if h.pool == 1 {
		c, err := h.connect()
		return &drpcLink{conn: c}, err
	}
	pool := drpcpool.New[string, drpcpool.Conn](drpcpool.Options{Capacity: h.pool, KeyCapacity: h.pool})
	conn := pool.Get(ctx, h.addr, func(context.Context, string) (drpcpool.Conn, error) { return h.connect() })
	return &drpcLink{conn: conn, pool: pool}, nil
}

func (h *drpcHost) connect() (*drpcconn.Conn, error) {
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		return nil, err
	}
	return drpcconn.NewWithOptions(c, drpcconn.Options{Manager: drpcOptions}), nil
}

func (h *drpcHost) close() {
	h.cancel()
	<-h.served
}

type drpcLink struct {
	conn drpc.Conn
	pool io.Closer // of the connections behind conn; nil if conn is the only one
}

func (l *drpcLink) close() {
	l.conn.Close()
	if l.pool != nil {
		l.pool.Close()
	}
}

func (l *drpcLink) newCaller(request []byte, _ bool) (op, error) {
	var reply []byte
	return func() error {
		if err := l.conn.Invoke(context.Background(), drpcEchoCall, drpcRaw{}, &request, &reply); err != nil {
			return err
		}
		return echoed(reply, request)
	}, nil
}

func (l *drpcLink) newStructCaller() (op, error) {
	in := sampleProto()
	return func() error {
		var out typepb.Field
		if err := l.conn.Invoke(context.Background(), drpcStructCall, drpcProto{}, in, &out); err != nil {
			return err
		}
		return checkField(out.Number, out.Name)
	}, nil
}

func (l *drpcLink) open(streamKind) (sender, error) {
	s, err := l.conn.NewStream(context.Background(), drpcSinkStream, drpcRaw{})
	return drpcSender{s}, err
}

type drpcSender struct{ s drpc.Stream }

func (s drpcSender) send(b []byte) error { return s.s.MsgSend(&b, drpcRaw{}) }

func (s drpcSender) finish() (int64, error) {
	if err := s.s.CloseSend(); err != nil {
		return 0, err
	}
	var b []byte
	if err := s.s.MsgRecv(&b, drpcRaw{}); err != nil {
		return 0, err
	}
	return countOf(b)
}
