package outbox

import "sync/atomic"

// writer says whether somebody writes, will, or may. At most one caller is the writer at a time.
// [Outbox.Enter] wakes without the lock of the Outbox; every other event needs the lock.
type writer struct{ state atomic.Uint32 }

// writerState says what the writer does.
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
// An Outbox begins asleep. Who wakes it is the writer until nothing is left. In the lower three
// states there always is a writer, if only in name: the one there was, or else whoever has halted
// or ended the Outbox.
type writerState uint32

const (
	asleep     writerState = iota // nobody writes
	announced                     // nobody writes, but somebody was announced who will call Claim
	shut                          // nobody writes, and messages wait until more may be in flight
	awake                         // somebody writes
	awakeEarly                    // as awake, and whoever was announced has not come yet
	parked                        // there is no Wire: the writer does not write, or soon finds out
	ending                        // nothing more is accepted, and the writer writes what is left
	ended                         // as ending, but there is no Wire
	writerStates
)

// writerEvent is what may happen to a writer.
type writerEvent uint8

const (
	wake     writerEvent = iota // somebody has something to write, and would be the writer
	announce                    // somebody leaves what another one will come and write
	come                        // who was announced is there
	dry                         // the writer has nothing left to write
	shuts                       // the writer has messages left, and no more may be in flight
	opens                       // more may be in flight
	halt                        // the Wire is lost
	resume                      // there is another Wire
	end                         // the Outbox is closed
	writerEvents
)

// stays stands where an event changes nothing.
const stays = writerStates

// writerNext is what follows.
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

// next returns the state after e. ok is false where e changes nothing.
func (s writerState) next(e writerEvent) (_ writerState, ok bool) {
	n := writerNext[s][e]
	if n == stays {
		return s, false
	}
	return n, true
}

// present reports whether there is a writer.
func (s writerState) present() bool { return s >= awake }

// closed reports whether nothing more is accepted.
func (s writerState) closed() bool { return s >= ending }

// halted reports whether there is no Wire.
func (s writerState) halted() bool { return s == parked || s == ended }

// current returns the state. Without the lock of the Outbox it may be another one at once.
func (w *writer) current() writerState { return writerState(w.state.Load()) }

// to lets e happen, and returns the state before. ok is false where e has changed nothing.
func (w *writer) to(e writerEvent) (was writerState, ok bool) {
	for {
		was = w.current()
		next, ok := was.next(e)
		if !ok || w.state.CompareAndSwap(uint32(was), uint32(next)) {
			return was, ok
		}
	}
}

// become reports whether the caller is the writer from here on: there was none.
func (w *writer) become() bool {
	_, became := w.to(wake)
	return became
}

// open is become for somebody who has opened the gate: nobody has written because of it.
func (w *writer) open() bool {
	_, became := w.to(opens)
	return became
}
