package main

import (
	"context"
	"net"
	"net/rpc"
)

// netrpcImpl returns net/rpc: with gob, its own codec, for structs, and with one that passes bytes
// through otherwise. It has no streams.
func netrpcImpl() *impl {
	return &impl{name: "netrpc", link: (*netrpcLink)(nil), paths: true, listen: func(_ context.Context, n needs) (host, error) {
		server := rpc.NewServer()
		if err := server.RegisterName("Bench", netrpcService{}); err != nil {
			return nil, err
		}
		return listenTCP(n.path, func(c net.Conn) {
			if n.typed {
				server.ServeConn(c)
			} else {
				server.ServeCodec(newRawServerCodec(c))
			}
		}, func(c net.Conn) link {
			if n.typed {
				return &netrpcLink{rpc.NewClient(c)}
			}
			return &netrpcLink{rpc.NewClientWithCodec(newRawClientCodec(c))}
		})
	}}
}

type netrpcService struct{}

// Echo is a method in the form that net/rpc requires.
func (netrpcService) Echo(in []byte, out *[]byte) error {
	*out = in
	return nil
}

// Struct is the same with a struct.
func (netrpcService) Struct(in *Field, out *Field) error {
	*out = *in
	return nil
}

type netrpcLink struct{ c *rpc.Client }

func (l *netrpcLink) close() { l.c.Close() }

func (l *netrpcLink) newCaller(request []byte, _ bool) (op, error) {
	var reply []byte
	return func() error {
		if err := l.c.Call("Bench.Echo", request, &reply); err != nil {
			return err
		}
		return echoed(reply, request)
	}, nil
}

func (l *netrpcLink) newStructCaller() (op, error) {
	return func() error {
		var out Field
		if err := l.c.Call("Bench.Struct", &sampleField, &out); err != nil {
			return err
		}
		return checkField(out.Number, out.Name)
	}, nil
}
