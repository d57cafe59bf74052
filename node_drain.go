package asterisque

import (
	"sync"
	"sync/atomic"
)

// nodeDrain says whether a node has begun to go away.
type nodeDrain struct {
	once  sync.Once
	begun chan struct{} // closed when it has; fixed

	told atomic.Bool // a Shutdown tells the hooks of its progress: there is one to tell
}

func (d *nodeDrain) begin() { d.once.Do(func() { close(d.begun) }) }
