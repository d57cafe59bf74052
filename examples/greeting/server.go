package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// serverService has the functions of the server.
func serverService(t *teller) *asterisque.Service {
	svc := asterisque.NewService()

	// A handler may call its caller back: the session has no client side and no server side.
	greet.Handle(svc, func(ctx context.Context, name string) (string, error) {
		t.tell("server → client", "  surround(%q)", name)
		star, err := surround.Call(ctx, asterisque.SessionOf(ctx), name)
		if err != nil {
			return "", err
		}
		t.tell("server ← client", "  %q", star)
		return "hello, " + star, nil
	})

	square.Handle(svc, func(_ context.Context, n int) (int, error) { return n * n, nil })

	// The deadline of the caller has crossed the wire, and ends the handler's context here.
	ponder.Handle(svc, func(ctx context.Context, question string) (string, error) {
		if deadline, ok := ctx.Deadline(); ok {
			t.tell("server", "  has %s left to ponder %q", roughly(time.Until(deadline)), question)
		}
		<-ctx.Done()
		return "", ctx.Err()
	})

	sum.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[int, int]) (int, error) {
		count, total := 0, 0
		for n, err := range p.All(ctx) {
			if err != nil {
				return 0, err
			}
			count++
			total += n
			if err := p.Send(ctx, total); err != nil {
				return 0, err
			}
		}
		return count, nil
	})
	return svc
}

// goodbye is the time limit for running calls when the program stops.
const goodbye = 5 * time.Second

// serve serves all peers that connect until ctx ends, or one session to its end.
func serve(ctx context.Context, ln wire.Listener, once bool, t *teller) error {
	node := asterisque.NewNode(
		asterisque.WithID("server"),
		asterisque.WithService(serverService(t)),
		asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, peer asterisque.Peer) (*asterisque.Grant, error) {
			t.tell("server ← client", "%q connects", peer.ID)
			// an error would refuse the peer, a Grant would be for this peer alone
			return nil, nil
		}}),
	)
	t.tell("server", "listens at %s", ln.URL())
	var err error
	if once {
		err = serveOne(ctx, node, ln, t)
	} else {
		err = node.Serve(ctx, ln)
	}
	t.tell("server", "stops")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	return errors.Join(err, node.Shutdown(ctx))
}

// serveOne serves the first connection only, as Serve does each.
func serveOne(ctx context.Context, node *asterisque.Node, ln wire.Listener, t *teller) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	defer ln.Close()
	w, err := ln.Accept()
	if errors.Is(err, net.ErrClosed) {
		return nil // ctx ended first
	}
	if err != nil {
		return err
	}
	sess, err := node.Accept(ctx, w)
	if err != nil {
		return err
	}
	select {
	case <-sess.Done():
		t.tell("server", "session %s has ended: %v", name(sess), sess.Err())
	case <-ctx.Done():
	}
	return nil
}
