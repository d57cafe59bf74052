package call

import "sync"

// mostInitial is the largest window, in bytes, with which a stream begins at the peer.
const mostInitial = 64 << 10

// initialCredit is the sender's side of the extra credit: what the Opens of streams may take for
// their first Blocks, besides the guaranteed credit. No Open waits for it. A nil initialCredit
// grants nothing.
type initialCredit struct {
	mu    sync.Mutex
	limit uint64 // total granted; guarded by mu, as taken
	taken uint64
}

// take returns the extra credit of an Open. The window of the stream becomes mostInitial, but the
// Open takes at most an eighth of the remaining credit: many streams opened at once share it.
func (c *initialCredit) take(guaranteed uint64) uint64 {
	if c == nil || guaranteed >= mostInitial {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(mostInitial-guaranteed, (c.limit-c.taken)/8)
	c.taken += n
	return n
}

// giveBack returns the extra credit of an Open that was never sent.
func (c *initialCredit) giveBack(n uint64) {
	if n == 0 || c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken -= min(n, c.taken)
}

// grant applies the peer's Credit. A total below an earlier one has no effect.
func (c *initialCredit) grant(total uint64) {
	if c == nil || total == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = max(c.limit, total)
}
