package asterisque

import (
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

const (
	// leastKeptControls is how many bytes of Controls are kept at least for a peer that does not
	// acknowledge them. With more room there are more streams, and more of them.
	leastKeptControls = 1 << 20

	// A resume costs what is sent again, and so many bytes. Those of one session cost so many bytes
	// a second, and may be ahead of that for so long: 1,024 without anything to send again, one of
	// 64 MiB.
	resumeCost  = 64 << 10
	resumeRate  = 16 << 20
	resumeAhead = 4 * time.Second
)

// resumption is what a session has that can be resumed.
type resumption struct {
	agreed promises     // what the peer promised when the session began; these are fixed
	plan   *limits.Plan // what it was promised

	entitlement // these lock themselves
	away        away

	mu      sync.Mutex
	granted grantedLimits // by the last Grant; guarded by mu, as paced
	paced   time.Time     // until when what the resumes so far have cost is paid
}

// pace waits until the session may be resumed once more.
func (r *resumption) pace(ctx context.Context) *Abort {
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

var errResumedOften = codec.ErrOverloaded.Withf("the session is resumed too often: what was sent again for it is more than %d bytes a second", resumeRate)

// paces counts what a resume has cost, in bytes, and returns for how long what was counted is ahead
// of its rate.
func (r *resumption) paces(cost int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.paced.Before(now) {
		r.paced = now
	}
	r.paced = r.paced.Add(time.Duration(float64(cost) / resumeRate * float64(time.Second)))
	return r.paced.Sub(now)
}
