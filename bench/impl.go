package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
)

// impl is one measured implementation. The methods of its links determine its abilities: see
// caller, structCaller, backCaller and streamer.
type impl struct {
	name    string
	extra   bool         // measured only if -impl asks for it
	link    link         // a nil pointer of the type of its links
	kinds   []streamKind // supported streams, if it is a streamer; nil is all
	without []string     // workloads that it supports, but without useful results
	callers int          // maximum concurrent callers; 0 is any number
	streams int          // maximum open streams; 0 is any number
	paths   bool         // it supports a link
	only    bool         // through a link only
	listen  func(ctx context.Context, n needs) (host, error)
}

// implementations returns all implementations, in the order of the table. Another wire of this
// library is one more line.
func implementations() []*impl {
	return []*impl{
		overScheme("tcp"),
		wideWindows(),
		overScheme("tls"),
		overScheme("unix"),
		overScheme("ws"),
		overScheme("smux"),
		overCodec(codec.JSON),
		overCodec(msgpack.Values),
		overScheme("nats"), natsImpl(),
		pingPongFloor(), pipelinedFloor(), copyFloor(), twoSocketsFloor(),
		grpcImpl(), ttrpcImpl(), drpcImpl(), drpcPoolImpl(), netrpcImpl(), connectImpl(),
		yamuxImpl(), libp2pImpl(), smuxImpl(), quicImpl(),
		grpcDefaultsImpl(), yamuxWideImpl(), smuxWideImpl(), quicWideImpl(),
	}
}

// needs has the parameters of a workload for an implementation before it listens.
type needs struct {
	typed bool // calls carry structs instead of bytes
	pipes int  // open at once, if more than usual
	// counts the idle streams at their handlers; nil if there are none
	arrived *atomic.Int64
	message int    // size of messages, in bytes, if above the default
	ask     int    // bytes that an asker sends
	soft    int    // inbound soft limit in bytes, if not the default
	path    *path  // between both ends; nil is the loopback interface
	meter   *meter // counts bytes on streams of the kind bulk; nil if they are not needed
}

// host is the accepting side of an implementation, and the shared state of its links.
type host interface {
	// dial connects and returns the connection, with both of its ends. A handshake may be left to
	// its first use.
	dial(ctx context.Context) (link, error)
	// close ends the host after its links.
	close()
}

// link is one connection. Its other methods are those of the interfaces below that the
// implementation supports.
type link interface{ close() }

// op is one operation, which is repeated. It is for one goroutine at a time.
type op func() error

// caller is a link with calls from the dialling side to the accepting one.
type caller interface {
	// newCaller returns a call that sends request and receives it back. urgent calls have a high
	// priority, if the implementation has priorities.
	newCaller(request []byte, urgent bool) (op, error)
}

// structCaller is a link that supports the same with a struct.
type structCaller interface{ newStructCaller() (op, error) }

// backCaller is a link with calls from the accepting side to the dialling one.
type backCaller interface {
	newBackCaller(request []byte) (op, error)
}

// asker is a link with streams from the dialling side, on which the accepting side sends needs.ask
// bytes, once it has received the same number.
type asker interface {
	// ask sends request and receives the answer. It returns the time to the first byte.
	ask(request []byte) (first time.Duration, err error)
}

// streamKind is the purpose of a stream.
type streamKind byte

const (
	messages streamKind = 'm' // whole messages, received one by one
	bulk     streamKind = 'b' // bytes, received in any pieces
	// bulk with the lowest priority, if the implementation has priorities
	background streamKind = 'g'
	large      streamKind = 'l' // messages with the lowest priority
	stuck      streamKind = 's' // its reader takes nothing
	// its reader receives the first message, if a stream needs one to exist, and waits
	idle streamKind = 'i'
)

// streamer is a link with streams from the dialling side to the accepting one.
type streamer interface {
	open(kind streamKind) (sender, error)
}

// sender is the sending end of a stream. It is for one goroutine at a time.
type sender interface {
	// send sends b, which does not change, and blocks while there is no room for it.
	send(b []byte) error
	// finish ends the stream and waits until all of it was received. It returns the reader's count
	// of bytes.
	finish() (received int64, err error)
}

// has reports whether i can open n streams of a kind at once.
func (i *impl) has(kind streamKind, n int) bool {
	_, ok := i.link.(streamer)
	return ok && (i.streams == 0 || n <= i.streams) && (i.kinds == nil || slices.Contains(i.kinds, kind))
}

// calls reports whether n callers can call at once.
func (i *impl) calls(n int) bool {
	_, ok := i.link.(caller)
	return ok && (i.callers == 0 || n <= i.callers)
}

// fits reports whether i supports the kind of network of w.
func (i *impl) fits(w *workload) bool {
	if w.path == nil {
		return !i.only
	}
	return i.paths
}

// mostCallers returns how many callers can call at once, n at most.
func (i *impl) mostCallers(n int) int {
	if i.callers == 0 {
		return n
	}
	return min(n, i.callers)
}

// echoed returns an error unless reply seems to be request, by a quick comparison.
func echoed(reply, request []byte) error {
	if len(reply) == len(request) && bytes.HasPrefix(reply, request[:min(8, len(request))]) && bytes.HasSuffix(reply, request[max(0, len(request)-8):]) {
		return nil
	}
	return fmt.Errorf("the reply of %d bytes is not the request of %d", len(reply), len(request))
}
