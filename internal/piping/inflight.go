package piping

import "sync/atomic"

// inflightBlocks counts the Blocks that are counted as sent and have not reached the port. It needs
// no lock, so that a Block takes the lock of its End only once.
type inflightBlocks struct{ n atomic.Uint32 }

// awaited is set while a divided Block waits until no Block is under way.
const awaited = 1 << 31

// begin counts a Block.
func (u *inflightBlocks) begin() { u.n.Add(1) }

// end is called when a Block has reached the port, or was rejected by it. It reports whether the
// Block was the last one and a divided Block waits for it.
func (u *inflightBlocks) end() (wake bool) { return u.n.Add(^uint32(0)) == awaited }

// noneLocked reports whether no Block is under way. Otherwise the divided Block waits for the last
// one.
func (u *inflightBlocks) noneLocked() bool {
	if u.n.Or(awaited)&^awaited > 0 {
		return false
	}
	u.calmLocked()
	return true
}

// calmLocked records that no divided Block waits any more.
func (u *inflightBlocks) calmLocked() { u.n.And(^uint32(awaited)) }
