// Package fakeclock is for tests in a bubble of testing/synctest, where a fake clock advances as
// soon as all goroutines of the bubble wait.
package fakeclock

import (
	"bytes"
	"runtime"
	"time"
)

// Sleep is time.Sleep in a bubble. Outside of a bubble it panics: a test that sleeps by the real
// clock is slow, and depends on the speed of the machine.
func Sleep(d time.Duration) {
	stack := make([]byte, 100)
	stack = stack[:runtime.Stack(stack, false)]
	state, _, _ := bytes.Cut(stack, []byte("\n")) // goroutine 7 [running, synctest bubble 1]:
	if !bytes.Contains(state, []byte("synctest")) {
		panic("fakeclock: Sleep is called outside of a bubble of testing/synctest")
	}
	time.Sleep(d) //nolint:forbidigo // by the fake clock
}
