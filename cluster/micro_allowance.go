package cluster

import "time"

const (
	allowancePerSecond = 1 << 20
	allowanceLeast     = 1 << 10 // what sending anything counts as
)

// allowance bounds what is sent to those who ask: 1 MiB a second, where each message counts as 1
// KiB at least. What is left of the last second may be sent at once. The zero allowance is full.
type allowance struct {
	paid time.Time // when what has been sent is paid for
}

// any reports whether something, however large, may be sent now.
func (a *allowance) any(now time.Time) bool { return a.paid.Sub(now) < time.Second }

// spend takes what n bytes cost.
func (a *allowance) spend(now time.Time, n int) {
	if a.paid.Before(now) {
		a.paid = now
	}
	a.paid = a.paid.Add(time.Duration(max(n, allowanceLeast)) * time.Second / allowancePerSecond)
}
