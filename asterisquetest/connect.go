package asterisquetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// Connect returns both ends of a session between two new nodes. The node there offers svc, if that
// is not nil; opts are for both nodes. See [Pair] for the details.
func Connect(t testing.TB, svc *asterisque.Service, opts ...asterisque.Option) (here, there *asterisque.Session) {
	t.Helper()
	p := Pair{Here: opts, There: opts}
	if svc != nil {
		p.There = append(slices.Clone(opts), asterisque.WithService(svc))
	}
	return p.Connect(t)
}

// Pair configures two nodes that are to be connected. The zero value is valid.
type Pair struct {
	Here, There []asterisque.Option // of the node that connects, and of the one that accepts

	// Wire returns both ends of the Wire between them. The default is [wire.Pipe]; package wiretest
	// has one that is slow, or breaks.
	Wire func() (here, there wire.Wire)
}

// Connect returns both ends of a session between two new nodes, which call each other "here" and
// "there" unless an option says otherwise. It fails the test at once if they do not connect.
//
// At the end of the test, after the functions that the test has registered later with Cleanup, it
// waits up to 5 seconds until no call runs any more on either side: neither an outbound one, stream
// or not, nor a handler, even of a cancelled call. Remaining calls fail the test; the error lists
// them, with the place in the program that made them, and their age. Then the nodes are closed. If
// the test has failed before, or was skipped, they are closed at once.
//
// To observe the calls, the nodes have interceptors outside those of the options.
func (p Pair) Connect(t testing.TB) (here, there *asterisque.Session) {
	t.Helper()
	w := new(callWatch)
	a, b := asterisque.NewNode(w.node("here", p.Here)...), asterisque.NewNode(w.node("there", p.There)...)
	w.closeAtEnd(t, a, b)
	connect := p.Wire
	if connect == nil {
		connect = wire.Pipe
	}
	nearEnd, farEnd := connect()
	here, there, err := attach(a, b, nearEnd, farEnd)
	if err != nil {
		t.Fatalf("asterisquetest: the nodes do not connect: %v", err)
	}
	return here, there
}

// ConnectNodes returns both ends of a session between two nodes that the test has made, over a Wire
// in memory. The session is closed with the test. The test closes the nodes, and running calls are
// not reported. It fails the test at once if the nodes do not connect.
func ConnectNodes(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	a, b := wire.Pipe()
	return ConnectOver(t, here, there, a, b)
}

// ConnectOver is ConnectNodes over two connected ends of a Wire, such as a faulty one of package
// wiretest: a for the node that connects, b for the one that accepts. They are closed with the
// session.
func ConnectOver(t testing.TB, here, there *asterisque.Node, a, b wire.Wire) (dialled, accepted *asterisque.Session) {
	t.Helper()
	dialled, accepted, err := attach(here, there, a, b)
	if err != nil {
		t.Fatalf("asterisquetest: the nodes do not connect: %v", err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// attach connects two nodes.
func attach(here, there *asterisque.Node, a, b wire.Wire) (dialled, accepted *asterisque.Session, err error) {
	type end struct {
		s   *asterisque.Session
		err error
	}
	accepts := make(chan end, 1)
	go func() { // ends with the handshake; attach waits for it
		s, err := there.Accept(context.Background(), b)
		accepts <- end{s, err}
	}()
	dialled, err = here.Attach(context.Background(), a)
	e := <-accepts
	if err == nil && e.err == nil {
		return dialled, e.s, nil
	}
	for _, s := range []*asterisque.Session{dialled, e.s} {
		if s != nil {
			s.Close()
		}
	}
	return nil, nil, fmt.Errorf("the one that connects says: %v; the one that accepts says: %v", err, e.err)
}
