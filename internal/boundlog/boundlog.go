// Package boundlog bounds the volume of a log. The log records events that peers cause, and peers
// must not be able to fill the disk. Records of one kind, which is a level and a text, are logged
// at a bounded rate, and the length of their texts is bounded as well.
package boundlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/truncate"
)

const (
	logsEach  = 10       // records of one kind per second
	mostKinds = 256      // distinct kinds; all further kinds count as one
	mostStack = 32 << 10 // bytes of a stack of this program
)

// handler passes records to next, within the bounds.
type handler struct {
	next  slog.Handler
	kinds *recordKinds
	most  int // bytes of a text
}

// New returns a logger that passes records to next within the bounds, with at most most bytes of
// each text.
func New(next *slog.Logger, most int) *slog.Logger {
	return slog.New(&handler{next.Handler(), &recordKinds{rates: make(map[recordKind]*rate)}, most})
}

// Enabled implements slog.Handler.
func (l *handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }() // of the application's handler
	return l.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *handler) Handle(ctx context.Context, r slog.Record) error {
	text := truncate.Text(r.Message, l.most)
	more, ok := l.kinds.pass(recordKind{r.Level, text}, time.Now())
	if !ok {
		return nil
	}
	// of the application's handler, or of a value with a failing method
	defer func() { _ = recover() }()
	short := slog.NewRecord(r.Time, r.Level, text, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(l.shorten(a))
		return true
	})
	if more > 0 {
		short.AddAttrs(slog.Uint64("more", more))
	}
	return l.next.Handle(ctx, short)
}

// WithAttrs implements slog.Handler.
func (l *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.with(func() slog.Handler {
		short := make([]slog.Attr, len(attrs))
		for i, a := range attrs {
			short[i] = l.shorten(a)
		}
		return l.next.WithAttrs(short)
	})
}

// WithGroup implements slog.Handler.
func (l *handler) WithGroup(name string) slog.Handler {
	return l.with(func() slog.Handler { return l.next.WithGroup(name) })
}

// with returns a handler that shares the rates of l and passes records to the result of next. If
// next panics, it returns l.
func (l *handler) with(next func() slog.Handler) (h slog.Handler) {
	h = l
	defer func() { _ = recover() }()
	return &handler{next(), l.kinds, l.most}
}

// shorten returns a with its text cut to the permitted length.
func (l *handler) shorten(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		most := l.most
		if a.Key == "stack" {
			most = mostStack
		}
		v = slog.StringValue(truncate.Text(v.String(), most))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			if text := err.Error(); len(text) > l.most {
				v = slog.StringValue(truncate.Text(text, l.most))
			}
		}
	case slog.KindGroup:
		var group []slog.Attr
		for _, a := range v.Group() {
			group = append(group, l.shorten(a))
		}
		v = slog.GroupValue(group...)
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// recordKind identifies the records that share a rate.
type recordKind struct {
	level slog.Level
	text  string
}

// recordKinds counts the records of each kind.
type recordKinds struct {
	mu    sync.Mutex
	rates map[recordKind]*rate // guarded by mu, like its rates
}

// rate counts the records of a kind in the second that began with the first of them.
type rate struct {
	since  time.Time
	passed int
	held   uint64 // held back since the last one that passed
}

// pass reports whether a record may be logged now, and the number of records of its kind that were
// held back before it.
func (k *recordKinds) pass(of recordKind, now time.Time) (more uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rates[of]
	if r == nil && len(k.rates) >= mostKinds {
		of = recordKind{}
		r = k.rates[of]
	}
	if r == nil {
		r = new(rate)
		k.rates[of] = r
	}
	if now.Sub(r.since) >= time.Second {
		r.since, r.passed = now, 0
	}
	if r.passed == logsEach {
		r.held++
		return 0, false
	}
	r.passed++
	more, r.held = r.held, 0
	return more, true
}
