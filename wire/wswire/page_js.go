package wswire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"syscall/js"
	"time"

	"github.com/coder/websocket"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

const (
	// mostUnread is the limit for unread messages. A WebSocket of JavaScript has no backpressure,
	// so a peer that sends more than that, and more than a session has granted, is disconnected.
	// One message may be larger: ReadFrame refuses or returns it.
	mostUnread = 64 << 20
	// perUnread is the additional cost of each.
	perUnread = 256
	// mostUnsent is how many bytes the host may buffer before a writer blocks.
	mostUnsent = 1 << 20
	// look is the polling interval of a waiting writer: there is no event for sent bytes.
	look = 5 * time.Millisecond
)

// pageWire is the Wire over a WebSocket of JavaScript, as a web page or Node.js has it. The host
// reads and writes whole messages by itself. It reports them by events. Their handlers must not
// block.
type pageWire struct {
	ws      js.Value // these are fixed
	remote  net.Addr
	private bool
	open    chan struct{} // closed when the connection is there
	arrived chan struct{} // has room for one; filled when ReadFrame has something to return

	life context.Context // ends with the connection; its cause is the reason
	end  context.CancelCauseFunc

	received, sent atomic.Uint64 // bytes
	closed         atomic.Bool   // Close was called
	refused        atomic.Pointer[websocket.CloseError]

	mu     sync.Mutex
	events map[string]js.Func // guarded by mu, like all below; nil after the last event
	unread []js.Value         // messages, each an ArrayBuffer
	waits  int                // cost of the messages in unread
}

// newPage returns the Wire over ws, which need not be open yet.
func newPage(ws js.Value, u *url.URL) *pageWire {
	p := &pageWire{
		ws: ws, open: make(chan struct{}), arrived: make(chan struct{}, 1),
		remote:  transport.Addr("ws", u.Host),
		private: u.Scheme == "wss" || transport.IsHere(transport.Addr("tcp", u.Host)) || u.Hostname() == "localhost",
	}
	p.life, p.end = context.WithCancelCause(context.Background())
	ws.Set("binaryType", "arraybuffer")
	p.events = map[string]js.Func{}
	for name, heard := range map[string]func(event js.Value){
		"onopen":    func(js.Value) { close(p.open) },
		"onmessage": p.onMessage,
		"onclose":   p.onClose,
		"onerror":   p.onError,
	} {
		p.events[name] = js.FuncOf(func(_ js.Value, args []js.Value) any { heard(args[0]); return nil })
		ws.Set(name, p.events[name])
	}
	return p
}

func (p *pageWire) onMessage(event js.Value) {
	data := event.Get("data")
	if data.Type() == js.TypeString {
		p.refuse(websocket.StatusUnsupportedData, "a text message; frames are binary messages")
		p.end(errText)
		return
	}
	n := data.Get("byteLength").Int()
	p.received.Add(uint64(n))
	p.mu.Lock()
	crowded := len(p.unread) > 0 && p.waits+n+perUnread > mostUnread
	if !crowded {
		p.unread = append(p.unread, data)
		p.waits += n + perUnread
	}
	p.mu.Unlock()
	if crowded {
		p.fail(fmt.Errorf("wire: read: the peer has sent more than %d bytes that were not read", mostUnread))
		return
	}
	select {
	case p.arrived <- struct{}{}:
	default: // it is known
	}
}

func (p *pageWire) onClose(event js.Value) {
	code := websocket.StatusCode(event.Get("code").Int())
	err := error(io.ErrUnexpectedEOF)
	if code != websocket.StatusAbnormalClosure {
		err = websocket.CloseError{Code: code, Reason: event.Get("reason").String()}
	}
	p.end(readError(err))
	p.deafen()
}

// onError receives failures, without their cause. If the connection was there, a close event
// follows and says more.
func (p *pageWire) onError(js.Value) {
	select {
	case <-p.open:
	default:
		p.end(errors.New("not open"))
		p.deafen()
	}
}

// deafen releases the event handlers.
func (p *pageWire) deafen() {
	p.mu.Lock()
	events := p.events
	p.events = nil
	p.mu.Unlock()
	for name, f := range events {
		p.ws.Set(name, js.Null())
		f.Release()
	}
}

// LocalAddr implements wire.Wire.
func (p *pageWire) LocalAddr() net.Addr { return transport.Addr("ws", "page") }

// RemoteAddr implements wire.Wire.
func (p *pageWire) RemoteAddr() net.Addr { return p.remote }

// Private implements wire.Private.
func (p *pageWire) Private() bool { return p.private }

// Progress implements wire.Meter.
func (p *pageWire) Progress() (received, sent uint64) {
	return p.received.Load(), p.sent.Load() - min(p.sent.Load(), uint64(p.unsent()))
}

// Receiving implements wire.Meter. The host assembles messages.
func (p *pageWire) Receiving() int { return 0 }

// ReadFrame implements wire.Wire.
func (p *pageWire) ReadFrame(max int) ([]byte, error) {
	for {
		over := p.life.Err() != nil // frames that arrived before are still returned
		if p.closed.Load() {
			return nil, errReadClosed
		}
		if data, ok := p.next(); ok {
			if n := data.Get("byteLength").Int(); n > max {
				return nil, p.tooLarge(max)
			}
			array := js.Global().Get("Uint8Array").New(data)
			frame := make([]byte, array.Length())
			js.CopyBytesToGo(frame, array)
			return frame, nil
		}
		if over {
			return nil, context.Cause(p.life)
		}
		select {
		case <-p.arrived:
		case <-p.life.Done():
		}
	}
}

// next returns the oldest message.
func (p *pageWire) next() (data js.Value, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unread) == 0 {
		return js.Value{}, false
	}
	data = p.unread[0]
	p.unread[0] = js.Value{}
	p.unread = p.unread[1:]
	p.waits -= data.Get("byteLength").Int() + perUnread
	return data, true
}

// tooLarge ends the reading, and discards queued messages.
func (p *pageWire) tooLarge(max int) error {
	p.refuse(websocket.StatusMessageTooBig, fmt.Sprintf("a message of more than %d bytes", max))
	p.mu.Lock()
	p.unread, p.waits = nil, 0
	p.mu.Unlock()
	p.end(fmt.Errorf("%w: a message has more than the %d bytes allowed", wire.ErrFrameTooLarge, max))
	return context.Cause(p.life)
}

// refuse sets the code and reason that Close sends to the peer.
func (p *pageWire) refuse(code websocket.StatusCode, reason string) {
	p.refused.Store(&websocket.CloseError{Code: code, Reason: reason})
}

// WriteFrames implements wire.Wire.
func (p *pageWire) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		if err := p.send(f); err != nil {
			return err
		}
	}
	return nil
}

// WriteBatch implements wire.BatchWriter.
func (p *pageWire) WriteBatch(batch []byte) error {
	for len(batch) > 0 {
		n := 4 + int(binary.BigEndian.Uint32(batch))
		if err := p.send(batch[4:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// send gives the host a message when there is room for it.
func (p *pageWire) send(frame []byte) error {
	for p.unsent() > mostUnsent && !p.closed.Load() && p.up() {
		select {
		case <-time.After(look):
		case <-p.life.Done():
		}
	}
	switch {
	case p.closed.Load():
		return errWriteClosed
	case !p.up():
		return fmt.Errorf("wire: write: %w", syscall.EPIPE)
	}
	array := js.Global().Get("Uint8Array").New(len(frame))
	js.CopyBytesToJS(array, frame)
	if err := try(func() { p.ws.Call("send", array) }); err != nil {
		return fmt.Errorf("wire: write: %w", err)
	}
	p.sent.Add(uint64(len(frame)))
	return nil
}

// up reports whether sent messages can get through.
func (p *pageWire) up() bool { return p.ws.Get("readyState").Int() == 1 }

// unsent returns how many bytes the host buffers.
func (p *pageWire) unsent() int { return p.ws.Get("bufferedAmount").Int() }

// fail ends the Wire for cause.
func (p *pageWire) fail(cause error) {
	p.end(cause)
	p.shut()
}

// Close implements wire.Wire. The host sends its buffer, and does not wait for the answer.
func (p *pageWire) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.end(errors.New("closed"))
	p.shut()
	p.deafen()
	return nil
}

// shut closes the WebSocket. JavaScript may send only codes from 3000 on: an error has the
// standard's code, plus 3000.
func (p *pageWire) shut() {
	code, reason := int(websocket.StatusNormalClosure), ""
	if r := p.refused.Load(); r != nil {
		code, reason = 3000+int(r.Code), r.Reason
	}
	try(func() { p.ws.Call("close", code, reason) }) // it rejects only invalid arguments
}
