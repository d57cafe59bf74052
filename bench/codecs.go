package main

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
)

// overCodec returns this library with another codec for values than CBOR. It makes calls with
// structs, the only ones that depend on the codec.
func overCodec(c codec.Values) *impl {
	return &impl{
		name: "asterisque-" + c.Name(), extra: true, link: structLink{},
		listen: func(ctx context.Context, n needs) (host, error) {
			h, err := astListen(ctx, "tcp", n, c)
			return structHost{h}, err
		},
	}
}

// structHost is a host with links that support only the methods of a structLink.
type structHost struct{ host }

func (h structHost) dial(ctx context.Context) (link, error) {
	l, err := h.host.dial(ctx)
	if err != nil {
		return nil, err
	}
	return structLink{l.(*astLink)}, nil
}

type structLink struct{ over *astLink }

func (l structLink) close() { l.over.close() }

func (l structLink) newStructCaller() (op, error) { return l.over.newStructCaller() }
