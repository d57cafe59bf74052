package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// drops counts the dropped Blocks of the session by reason.
type drops struct {
	mu    sync.Mutex
	count map[asterisque.DropReason]int64 // guarded by mu
}

// note is for [asterisque.Hooks].Dropped.
func (d *drops) note(_ *asterisque.Session, drop asterisque.Drop) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count == nil {
		d.count = make(map[asterisque.DropReason]int64)
	}
	d.count[drop.Reason]++
}

// look returns the number of drops, and their reasons in readable form.
func (d *drops) look() (total int64, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(d.count)) {
		total += d.count[reason]
		parts = append(parts, fmt.Sprintf("%d %v", d.count[reason], reason))
	}
	if total == 0 {
		return 0, "none"
	}
	return total, strings.Join(parts, ", ")
}

// answers records the durations of commands.
type answers struct {
	mu  sync.Mutex
	all []time.Duration // guarded by mu; in the order of the answers
}

func (a *answers) note(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, d)
}

// since returns the latencies recorded after the first n, in ascending order.
func (a *answers) since(n int) latencies {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := latencies(slices.Clone(a.all[n:]))
	slices.Sort(l)
	return l
}

// latencies are durations of calls, in ascending order.
type latencies []time.Duration

// percentile returns the time that p of 100 calls did not exceed, in readable form.
func (l latencies) percentile(p int) string {
	if len(l) == 0 {
		return "-"
	}
	return l[(len(l)-1)*p/100].Round(100 * time.Microsecond).String()
}

// report prints the figures. It is for one goroutine.
type report struct {
	out    io.Writer // these are fixed
	begin  time.Time
	server *server
	client *client
	drops  *drops

	last seen // when the last line was printed
}

// seen has the totals at some moment.
type seen struct {
	at                           time.Duration
	delivered, skipped, uploaded int64
	answered                     int
}

// head prints the names of the columns.
func (r *report) head() {
	fmt.Fprintf(r.out, "%6s | %-21s | %-9s | %-24s | %-9s | %s\n", "", "sensor, per second", "upload", "commands", "session", "dropped so far, and why")
	fmt.Fprintf(r.out, "%6s | %10s %10s | %9s | %6s %8s %8s | %-9s |\n", "time", "delivered", "skipped", "MB/s", "done", "p50", "p99", "")
}

// print prints the figures since the last line.
func (r *report) print() {
	now := seen{at: time.Since(r.begin), delivered: r.server.delivered.Load(), skipped: r.server.skipped.Load(), uploaded: r.server.uploaded.Load()}
	took := r.client.answers.since(r.last.answered)
	now.answered = r.last.answered + len(took)
	gone := (now.at - r.last.at).Seconds()
	perSecond := func(now, last int64) float64 { return float64(now-last) / gone }
	_, why := r.drops.look()
	fmt.Fprintf(r.out, "%4.1f s | %10.0f %10.0f | %9.2f | %6d %8s %8s | %-9v | %s\n", now.at.Seconds(),
		perSecond(now.delivered, r.last.delivered), perSecond(now.skipped, r.last.skipped), perSecond(now.uploaded, r.last.uploaded)/1e6,
		len(took), took.percentile(50), took.percentile(99), r.client.sess.Stats().OutboundState, why)
	r.last = now
}

// sum prints the totals, and fails if something is missing.
func (r *report) sum() error {
	c := r.client
	sent, refused, orders := c.sent.Load(), c.refused.Load(), c.orders.Load()
	delivered, skipped := int64(c.tally.Delivered), int64(c.tally.Skipped)
	dropped, why := r.drops.look()
	took := c.answers.since(0)
	fmt.Fprintf(r.out, `
sensor    %d readings: %d sent, %d refused
          %d delivered + %d skipped = %d
          dropped before they left: %s; too old on arrival: %d
upload    %.2f MB, SHA-256 %.4x… on both sides
commands  %d given, %d answered: p50 %s, p99 %s, slowest %s
`, sent+refused, sent, refused, delivered, skipped, delivered+skipped, why, skipped-dropped, float64(r.server.uploaded.Load())/1e6, c.sum,
		orders, len(took), took.percentile(50), took.percentile(99), took.percentile(100))
	switch {
	case delivered+skipped != sent:
		return fmt.Errorf("%d readings were sent, and %d are accounted for", sent, delivered+skipped)
	case dropped > skipped:
		return fmt.Errorf("%d readings were dropped, and the receiver knows of %d", dropped, skipped)
	case int64(len(took)) != orders:
		return fmt.Errorf("%d commands were given, and %d answered", orders, len(took))
	}
	fmt.Fprintln(r.out, "\nEvery reading is accounted for, no byte of the upload is missing, and no command was left waiting.")
	return nil
}
