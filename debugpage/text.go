package debugpage

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// print writes p as plain text.
func (p *page) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "asterisque, %s\n", p.Time.UTC().Format("2006-01-02 15:04:05.000 MST"))
	for i := range p.Nodes {
		p.Nodes[i].print(b)
	}
	printRecent(b, p.Recent)
}

func (n *nodeView) print(b *bytes.Buffer) {
	st := &n.Stats
	fmt.Fprintf(b, "\nNODE %s: %s, %d calls run, %d wait; %s busy (%d at most), %d idle, %s for one", plain(st.ID), count(st.Sessions, "session"),
		st.Total.Running, st.Total.Waiting, count(st.Busy, "worker"), st.MostBusy, st.IdleWorkers, count(st.Crowded, "session waits", "sessions wait"))
	if st.Held > 0 {
		fmt.Fprintf(b, "; %s held, of %s", bytesOf(st.Held), bound(st.Budget))
	}
	b.WriteByte('\n')
	if len(st.Functions) > 0 {
		printFunctions(b, st.Functions)
		leftOut(b, n.FunctionsLeftOut, "function")
	}
	if len(n.Sessions) > 0 {
		printSessions(b, n.Sessions)
		leftOut(b, n.SessionsLeftOut, "session")
		printPaths(b, n.Sessions)
		printRoom(b, n.Sessions)
		printWaits(b, n.Sessions)
	}
	for i := range n.Sessions {
		n.Sessions[i].print(b)
	}
}

func printFunctions(b *bytes.Buffer, list []asterisque.FunctionStats) {
	t := newTable("function", "name", "calls", "queued p50", "p95", "p99", "ran p50", "p95", "p99", "failed")
	for _, f := range list {
		q, r := f.Queued, f.Ran
		t.row(f.Number, plain(f.Name), f.Calls, duration(q.P50), duration(q.P95), duration(q.P99), duration(r.P50), duration(r.P95), duration(r.P99), failures(f.Failed))
	}
	t.print(b)
}

func printSessions(b *bytes.Buffer, list []sessionView) {
	t := newTable("session", "peer", "address", "inbound", "bytes", "messages", "outbound", "bytes", "messages", "calls", "wait", "run", "made", "served")
	for _, s := range list {
		st := &s.Stats
		t.row(s.ID[:8], plain(s.Peer), plain(s.RemoteAddr), st.InboundState, amount(st.Inbound), st.Inbound.Messages, st.OutboundState, amount(st.Outbound), st.Outbound.Messages,
			st.Pipes, st.Waiting, st.Running, st.Made, st.Served)
	}
	t.print(b)
}

// printPaths writes the path estimates of sessions.
func printPaths(b *bytes.Buffer, list []sessionView) {
	t := newTable("session", "peer", "round trip", "delivers", "in flight", "at most", "bound by")
	for _, s := range list {
		p := &s.Stats.Path
		trip, rate := number("-"), number("-")
		if p.RoundTrip > 0 {
			trip = duration(p.RoundTrip)
		}
		if p.Rate > 0 {
			rate = bytesOf(int(p.Rate)) + "/s"
		}
		t.row(s.ID[:8], plain(s.Peer), trip, rate, bytesOf(p.InFlight), bound(p.Limit), p.Bound)
	}
	t.print(b)
	b.WriteString("  (estimates of the path on which this side sends, - if unknown yet; in flight: bytes sent and not yet read; bound by: the limit of the rate, which is the application when no message waits)\n")
}

// printRoom writes how much of their room sessions have promised, and how much of that is held.
func printRoom(b *bytes.Buffer, list []sessionView) {
	t := newTable("session", "peer", "held", "promised", "room", "held", "room", "held", "room", "held", "room", "held", "room", "promised", "room", "held", "answers")
	t.group(" calls that wait ", 2, 4)
	t.group(" nested calls ", 5, 6)
	t.group(" served ", 7, 8)
	t.group(" made ", 9, 10)
	t.group(" large Blocks ", 11, 12)
	t.group(" elastic ", 13, 14)
	t.group(" running calls ", 15, 16)
	for _, s := range list {
		st, c := &s.Stats, &s.Stats.Classes
		row := []any{s.ID[:8], plain(s.Peer), bytesOf(c.Calls.Held), bytesOf(c.Calls.Promised), bound(c.Calls.Room)}
		for _, share := range []asterisque.Share{c.Nested, c.Served, c.Made, c.Large} {
			row = append(row, bytesOf(share.Held), bound(share.Room))
		}
		t.row(append(row, bytesOf(c.Elastic.Promised), bound(c.Elastic.Room), bytesOf(st.Holding), st.Parked)...)
	}
	t.print(b)
	b.WriteString("  (served and made are the guaranteed windows of streams; promised is what the peer may send without being asked first, and what it has sent and holds room; answers are those that wait to leave)\n")
}

// printWaits writes which sessions have waited for room, and which wait now.
func printWaits(b *bytes.Buffer, list []sessionView) {
	const columns = 3
	t := newTable("session", "peer", "now", "times", "in all", "now", "times", "in all", "now", "times", "in all", "now", "times", "in all", "now", "times", "in all")
	for i, name := range []string{" own function ", " room at the peer ", " room here ", " outbound limit "} {
		t.group(name, 2+columns*i, 1+columns*(i+1))
	}
	t.group(" large Blocks ", 14, 14)
	t.group(" reader stopped ", 15, 16)
	none := true
	for _, s := range list {
		st := &s.Stats
		if !waited(st) {
			continue
		}
		none = false
		row := []any{s.ID[:8], plain(s.Peer)}
		for _, w := range []asterisque.Wait{st.WaitPlace, st.WaitOpens, st.WaitWindow, st.WaitOutbound} {
			row = append(row, w.Now, w.Times, duration(w.For))
		}
		t.row(append(row, st.Classes.Large.Waiting, st.Stops, duration(st.Stopped))...)
	}
	if none {
		b.WriteString("\n  no session had to wait for room\n")
		return
	}
	t.print(b)
	b.WriteString("  (calls wait for others of their function (WithMaxOutstanding) and for room at the peer, streams for room here for their windows, and all that is sent at the outbound limit)\n")
}

// waited reports whether a session has waited for room.
func waited(st *asterisque.Stats) bool {
	return st.WaitPlace.Times+st.WaitOpens.Times+st.WaitWindow.Times+st.WaitOutbound.Times+st.Stops > 0 || st.Classes.Large.Waiting > 0
}

// print writes the calls of s.
func (s *sessionView) print(b *bytes.Buffer) {
	if len(s.Pipes) == 0 && s.PipesLeftOut == 0 {
		return
	}
	fmt.Fprintf(b, "\n  session %s %s\n", s.ID[:8], plain(s.Peer))
	t := newTable("pipe", "function", "name", "call", "priority", "bytes", "Blocks waiting")
	for _, p := range s.Pipes {
		state := "runs here"
		switch {
		case p.Made:
			state = "made here"
		case p.Queued:
			state = "waits here"
		}
		t.row(p.ID, p.Function, plain(p.Name), state, p.Priority, amount(p.Waiting), p.Waiting.Messages)
	}
	t.print(b)
	leftOut(b, s.PipesLeftOut, "call")
}

func leftOut(b *bytes.Buffer, n int, what string) {
	if n > 0 {
		fmt.Fprintf(b, "  … and %s more, left out\n", count(n, what))
	}
}

// count returns n with its noun in the singular or plural. The default plural is one with an s.
func count(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// failures returns the numbers of failed calls, by their reasons.
func failures(failed map[string]uint64) string {
	list := make([]string, 0, len(failed))
	for _, reason := range slices.Sorted(maps.Keys(failed)) {
		list = append(list, fmt.Sprintf("%s %d", reason, failed[reason]))
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

// longest is the maximum number of characters shown of a text.
const longest = 64

// plain returns untrusted text in a form that cannot control a terminal.
func plain(text string) string {
	if text == "" {
		return "-"
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest-1]) + "…"
	}
	return text
}

// duration returns d with about three digits.
func duration(d time.Duration) number {
	for _, step := range []struct{ below, to time.Duration }{
		{10 * time.Microsecond, 10 * time.Nanosecond}, {10 * time.Millisecond, 10 * time.Microsecond}, {10 * time.Second, 10 * time.Millisecond},
	} {
		if d < step.below {
			return number(d.Round(step.to).String())
		}
	}
	return number(d.Round(time.Second).String())
}

// amount returns the bytes of a in a readable unit.
func amount(a limits.Amount) number { return bytesOf(a.Bytes) }

// bytesOf returns n bytes in a readable unit.
func bytesOf(n int) number {
	switch {
	case n < 10<<10:
		return number(strconv.Itoa(n))
	case n < 10<<20:
		return number(fmt.Sprintf("%d KiB", n>>10))
	default:
		return number(fmt.Sprintf("%d MiB", n>>20))
	}
}

// bound returns a bound of n bytes. Zero means no bound.
func bound(n int) number {
	if n == 0 {
		return "any"
	}
	return bytesOf(n)
}
