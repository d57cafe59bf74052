package cluster

import "time"

const (
	allowancePerSecond = 1 << 20
	allowanceLeast     = 1 << 10 // minimum cost of a message
)

// answerRate limits the rate of answers to tools: 1 MiB a second, where each message counts at
// least 1 KiB. The unused part of the last second may be sent at once. The zero allowance is full.
type answerRate struct {
	paid time.Time // when the sent bytes are paid for
}

// any reports whether a message of any size may be sent now.
func (a *answerRate) any(now time.Time) bool { return a.paid.Sub(now) < time.Second }

// spend takes the cost of n bytes.
func (a *answerRate) spend(now time.Time, n int) {
	if a.paid.Before(now) {
		a.paid = now
	}
	a.paid = a.paid.Add(time.Duration(max(n, allowanceLeast)) * time.Second / allowancePerSecond)
}
