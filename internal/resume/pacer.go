package resume

import (
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
)

const (
	// A resume costs the bytes that are sent again, and resumeCost. A session may spend resumeRate
	// bytes a second, and be ahead of that by resumeAhead: 1,024 resumes without retransmission, or
	// one of 64 MiB.
	resumeCost  = 64 << 10
	resumeRate  = 16 << 20
	resumeAhead = 4 * time.Second
)

// Pacer bounds the rate of the resumes of a session, by their cost.
type Pacer struct {
	mu    sync.Mutex
	paced time.Time // time until which the cost of the resumes so far is paid; guarded by mu
}

// Wait waits until the session may be resumed once more.
func (r *Pacer) Wait(ctx context.Context) *codec.Abort {
	for {
		ahead := r.paces(0) - resumeAhead
		if ahead <= 0 {
			return nil
		}
		if !wait.Sleep(ctx, ahead) {
			return ErrTooOften
		}
	}
}

// ErrTooOften rejects a resume of a session that is resumed too often.
var ErrTooOften = codec.ErrOverloaded.Withf("the session is resumed too often: more than %d bytes a second were sent again for it", resumeRate)

// Spend counts the cost of a resume that sends these bytes again.
func (r *Pacer) Spend(bytes int) { r.paces(resumeCost + bytes) }

// paces counts the cost of a resume, in bytes, and returns how far the total is ahead of its rate.
func (r *Pacer) paces(cost int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.paced.Before(now) {
		r.paced = now
	}
	r.paced = r.paced.Add(time.Duration(float64(cost) / resumeRate * float64(time.Second)))
	return r.paced.Sub(now)
}
