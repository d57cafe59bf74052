package asterisque

import (
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

const (
	// leastKeptControls is the minimum number of bytes of Controls that are kept for a peer that
	// does not acknowledge them. With more budget there are more streams, and more Controls.
	leastKeptControls = 1 << 20

	// A resume costs the bytes that are sent again, and resumeCost. A session may spend resumeRate
	// bytes a second, and be ahead of that by resumeAhead: 1,024 resumes without retransmission, or
	// one of 64 MiB.
	resumeCost  = 64 << 10
	resumeRate  = 16 << 20
	resumeAhead = 4 * time.Second
)

// resumeState is the state of a session that can be resumed.
type resumeState struct {
	agreed syncSettings // granted by the peer when the session began; these are fixed
	plan   *limits.Plan // granted to the peer

	resumeTicket // these lock themselves
	suspended    suspended

	mu      sync.Mutex
	granted grantedLimits // by the last Grant; guarded by mu, as paced
	paced   time.Time     // time until which the cost of the resumes so far is paid
}

// pace waits until the session may be resumed once more.
func (r *resumeState) pace(ctx context.Context) *Abort {
	for {
		wait := r.paces(0) - resumeAhead
		if wait <= 0 {
			return nil
		}
		if !sleep(ctx, wait) {
			return errResumedOften
		}
	}
}

var errResumedOften = codec.ErrOverloaded.Withf("the session is resumed too often: more than %d bytes a second were sent again for it", resumeRate)

// paces counts the cost of a resume, in bytes, and returns how far the total is ahead of its rate.
func (r *resumeState) paces(cost int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.paced.Before(now) {
		r.paced = now
	}
	r.paced = r.paced.Add(time.Duration(float64(cost) / resumeRate * float64(time.Second)))
	return r.paced.Sub(now)
}
