package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// progress shows the progress of a copy, beside the state of its session: as a bar on a terminal,
// and otherwise in lines, one for each file and for each second. It is for one goroutine at a time,
// except for onState.
type progress struct {
	out   io.Writer                // these are fixed
	bar   *progressbar.ProgressBar // nil: lines
	every time.Duration            // interval between two lines

	sess  *asterisque.Session // of the current file, as all below
	file  Offer
	from  int64 // bytes that the receiver had already
	done  int64 // bytes sent
	begun time.Time
	shown time.Time

	sent   int64           // bytes of all files
	states [4]atomic.Int64 // how often the outbound direction has entered each state
}

// newProgress returns a progress of size bytes in total that is shown on out.
func newProgress(out io.Writer, size int64) *progress {
	p := &progress{out: out, every: time.Second}
	if isTerminal(out) && size > 0 {
		p.showBar(size)
	}
	return p
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *progress) showBar(size int64) {
	p.every = 100 * time.Millisecond
	p.bar = progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(p.out),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(p.every),
		progressbar.OptionShowCount(),
		progressbar.OptionShowBytes(true),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionOnCompletion(func() { fmt.Fprintln(p.out) }),
	)
}

// onState is for [asterisque.Hooks].LimitChanged. It is called for every change.
func (p *progress) onState(_ *asterisque.Session, d asterisque.Direction, s limits.State) {
	if d == asterisque.Outbound {
		p.states[s].Add(1)
	}
}

// begin records the current file, and its first byte.
func (p *progress) begin(sess *asterisque.Session, o Offer, from int64) {
	p.sess, p.file, p.from, p.done = sess, o, from, 0
	p.begun = time.Now()
	p.shown = p.begun
	if p.bar != nil && from > 0 {
		// so that the rate counts only the bytes that are sent
		p.bar.ChangeMax64(p.bar.GetMax64() - from)
	}
}

// Write counts the bytes sent.
func (p *progress) Write(b []byte) (int, error) {
	p.done += int64(len(b))
	p.sent += int64(len(b))
	if p.bar != nil {
		p.bar.Add(len(b))
	}
	if now := time.Now(); now.Sub(p.shown) >= p.every {
		p.shown = now
		p.show()
	}
	return len(b), nil
}

// show prints the progress, and the state of the session: whether it is blocked, and how much is
// queued.
func (p *progress) show() {
	stats := p.sess.Stats()
	state := fmt.Sprintf("%v, %d KiB wait", stats.OutboundState, stats.Outbound.Bytes>>10)
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%-24s", state))
		return
	}
	fmt.Fprintf(p.out, "  %-24q %10s of %10s  %s  session %s\n", p.file.Name, amount(p.from+p.done), amount(p.file.Size), rate(p.done, time.Since(p.begun)), state)
}

// end records that the receiver has the whole file.
func (p *progress) end() {
	if p.bar != nil {
		return
	}
	how := rate(p.done, time.Since(p.begun))
	switch {
	case p.file.Size == 0:
		how = "empty"
	case p.from == p.file.Size:
		how = "was there already"
	case p.from > 0:
		how += ", went on after " + amount(p.from)
	}
	fmt.Fprintf(p.out, "  %-24q %10s  %s\n", p.file.Name, amount(p.file.Size), how)
}

// stop ends the line of the bar, if the copy has not ended.
func (p *progress) stop() {
	if p.bar != nil && !p.bar.IsFinished() {
		p.bar.Exit()
	}
}

// summary prints the totals at the end.
func (p *progress) summary(elapsed time.Duration) {
	fmt.Fprintf(p.out, "  %-24s %10s  %s, in %v; the session was congested %d times, and at its soft limit %d times\n",
		"sent in all", amount(p.sent), rate(p.sent, elapsed), elapsed.Round(time.Millisecond), p.states[limits.Congested].Load(), p.states[limits.Soft].Load())
}

// amount returns a number of bytes in readable form.
func amount(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// rate returns n bytes per time in readable form.
func rate(n int64, d time.Duration) string {
	return fmt.Sprintf("%.0f MB/s", float64(n)/1e6/max(d.Seconds(), 1e-9))
}
