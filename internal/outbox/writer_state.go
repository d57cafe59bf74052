package outbox

import "sync/atomic"

// writer is the state of the writer role: taken, announced or free. At most one caller is the
// writer at a time. [Outbox.Enter] wakes the writer without the lock of the Outbox; every other
// event needs the lock.
type writer struct{ state atomic.Uint32 }

// writerState is a state of the writer role.
//
//	asleep ──── announce ───► announced
//	 ▲  │ ◄────── come ──────── ▲  │
//	 │  │                       │  │
//	dry wake                   dry wake
//	 │  │                       │  │
//	 │  ▼                       │  ▼
//	awake ◄────── come ─────── awakeEarly
//	 ▲  │                          │
//	 │  └────────── shuts ─────────┴──► shut ── opens, wake ──► awake
//	 │
//	 └────── resume ─────┐
//	these five ── halt ──► parked ── end ──┐
//	these five ── end ───► ending ── halt ─┴─► ended
//
// An Outbox begins asleep. The caller that wakes it is the writer until nothing is left. The lower
// three states always have a writer, at least formally: the present one, or else the caller that
// has halted or ended the Outbox.
type writerState uint32

const (
	asleep     writerState = iota // there is no writer
	announced                     // there is no writer, but one is announced that will call Claim
	shut                          // there is no writer, and messages wait at the gate
	awake                         // there is a writer
	awakeEarly                    // as awake, and the announced writer has not come yet
	parked                        // there is no Wire; the writer, if any, is about to notice
	ending                        // no message is accepted, and the writer writes the rest
	ended                         // as ending, but there is no Wire
	writerStates
)

// writerEvent is an event of the writer role.
type writerEvent uint8

const (
	wake     writerEvent = iota // a caller has a message to write, and would become the writer
	announce                    // a caller leaves a message for a writer to come
	come                        // the announced writer has come
	dry                         // the writer has nothing left to write
	shuts                       // messages are left, and the gate is closed
	opens                       // the gate opens
	halt                        // the Wire is lost
	resume                      // there is another Wire
	end                         // the Outbox is closed
	writerEvents
)

// stays means that an event has no effect.
const stays = writerStates

// writerNext contains the transitions.
var writerNext = [writerStates][writerEvents]writerState{
	//           wake        announce   come    dry        shuts  opens  halt    resume end
	asleep:     {awake, announced, stays, stays, stays, stays, parked, stays, ending},
	announced:  {awakeEarly, stays, asleep, stays, stays, stays, parked, stays, ending},
	shut:       {awake, stays, stays, stays, stays, awake, parked, stays, ending},
	awake:      {stays, stays, stays, asleep, shut, stays, parked, stays, ending},
	awakeEarly: {stays, stays, awake, announced, shut, stays, parked, stays, ending},
	parked:     {stays, stays, stays, stays, stays, stays, stays, awake, ended},
	ending:     {stays, stays, stays, stays, stays, stays, ended, stays, stays},
	ended:      {stays, stays, stays, stays, stays, stays, stays, stays, stays},
}

// next returns the state after e. ok is false if e has no effect.
func (s writerState) next(e writerEvent) (_ writerState, ok bool) {
	n := writerNext[s][e]
	if n == stays {
		return s, false
	}
	return n, true
}

// present reports whether there is a writer.
func (s writerState) present() bool { return s >= awake }

// closed reports whether no message is accepted any more.
func (s writerState) closed() bool { return s >= ending }

// halted reports whether there is no Wire.
func (s writerState) halted() bool { return s == parked || s == ended }

// current returns the state. Without the lock of the Outbox the state may change at any time.
func (w *writer) current() writerState { return writerState(w.state.Load()) }

// to applies e, and returns the former state. ok is false if e had no effect.
func (w *writer) to(e writerEvent) (was writerState, ok bool) {
	for {
		was = w.current()
		next, ok := was.next(e)
		if !ok || w.state.CompareAndSwap(uint32(was), uint32(next)) {
			return was, ok
		}
	}
}

// become reports whether the caller has become the writer, because there was none.
func (w *writer) become() bool {
	_, became := w.to(wake)
	return became
}

// open is become for a caller that has opened the gate, at which the writer had stopped.
func (w *writer) open() bool {
	_, became := w.to(opens)
	return became
}
