package wswire

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall/js"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

func dial(ctx context.Context, u *url.URL, cfg dialConfig) (wire.Wire, error) {
	switch err := check(u); {
	case err != nil:
		return nil, transport.BadURL(err)
	case cfg.tls != nil:
		return nil, errors.New("in JavaScript TLS is its host's, and takes no configuration")
	case cfg.header != nil:
		return nil, errors.New("in JavaScript a WebSocket takes no headers; put a credential into the URL, or give it to the node")
	}
	class := js.Global().Get("WebSocket")
	if class.IsUndefined() {
		return nil, errors.New("this JavaScript has no WebSocket; Node.js has one from version 22 on, and in version 20 with --experimental-websocket")
	}
	var ws js.Value
	if err := try(func() { ws = class.New(u.String(), Subprotocol) }); err != nil {
		return nil, err
	}
	p := newPage(ws, u)
	select {
	case <-p.open:
	case <-p.life.Done():
		return nil, errors.New("the server did not open a WebSocket; JavaScript does not report the reason")
	case <-ctx.Done():
		p.Close()
		return nil, context.Cause(ctx)
	}
	if got := ws.Get("protocol").String(); got != Subprotocol {
		p.Close()
		return nil, fmt.Errorf("the server has a WebSocket there, but did not agree to the subprotocol %s; it chose %q", Subprotocol, got)
	}
	return p, nil
}

// try runs f, and returns the exception that JavaScript throws.
func try(f func()) (err error) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case js.Error:
			err = thrown
		default:
			panic(thrown)
		}
	}()
	f()
	return nil
}

func listen(context.Context, *url.URL, wire.Options) (wire.Listener, error) {
	return nil, errors.New("JavaScript can dial a WebSocket, and cannot listen for one")
}
