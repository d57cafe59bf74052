package asterisque

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/cut"
)

// What peers do is logged, and so peers must not be able to fill the disk. Records of one kind,
// which is a level and a text, are logged at a bounded rate, and what they say is bounded as well.

const (
	logsEach  = 10       // records of one kind in a second
	mostKinds = 256      // that are told apart; those beyond are of one kind together
	mostText  = 1 << 10  // bytes of a text in an attribute
	mostStack = 32 << 10 // bytes of a stack, which is this program's own
)

// boundedLog hands records to next, as many as may be.
type boundedLog struct {
	next  slog.Handler
	kinds *logKinds
}

// bounded returns a logger that hands to next what may be logged.
func bounded(next *slog.Logger) *slog.Logger {
	return slog.New(&boundedLog{next.Handler(), &logKinds{kinds: make(map[logKind]*logRate)}})
}

// Enabled implements slog.Handler.
func (l *boundedLog) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }() // of the application's handler
	return l.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *boundedLog) Handle(ctx context.Context, r slog.Record) error {
	text := cut.Text(r.Message, mostText)
	more, ok := l.kinds.pass(logKind{r.Level, text}, time.Now())
	if !ok {
		return nil
	}
	// of the application's handler, or of a value that cannot say what it is
	defer func() { _ = recover() }()
	short := slog.NewRecord(r.Time, r.Level, text, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(boundedAttr(a))
		return true
	})
	if more > 0 {
		short.AddAttrs(slog.Uint64("more", more))
	}
	return l.next.Handle(ctx, short)
}

// WithAttrs implements slog.Handler.
func (l *boundedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.with(func() slog.Handler {
		short := make([]slog.Attr, len(attrs))
		for i, a := range attrs {
			short[i] = boundedAttr(a)
		}
		return l.next.WithAttrs(short)
	})
}

// WithGroup implements slog.Handler.
func (l *boundedLog) WithGroup(name string) slog.Handler {
	return l.with(func() slog.Handler { return l.next.WithGroup(name) })
}

// with returns a handler that shares the rates of l, and hands to what next returns, or to where l
// does if that panics.
func (l *boundedLog) with(next func() slog.Handler) (h slog.Handler) {
	h = l
	defer func() { _ = recover() }()
	return &boundedLog{next(), l.kinds}
}

// boundedAttr returns a with no more of a text than may be logged.
func boundedAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		most := mostText
		if a.Key == "stack" {
			most = mostStack
		}
		v = slog.StringValue(cut.Text(v.String(), most))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			if text := err.Error(); len(text) > mostText {
				v = slog.StringValue(cut.Text(text, mostText))
			}
		}
	case slog.KindGroup:
		var group []slog.Attr
		for _, a := range v.Group() {
			group = append(group, boundedAttr(a))
		}
		v = slog.GroupValue(group...)
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// logKind is what is logged at a bounded rate.
type logKind struct {
	level slog.Level
	text  string
}

// logKinds counts the records of each kind.
type logKinds struct {
	mu    sync.Mutex
	kinds map[logKind]*logRate // guarded by mu, and so is what it points to
}

// logRate counts the records of a kind in the second that began with the first of them.
type logRate struct {
	since  time.Time
	passed int
	held   uint64 // back, since one has passed
}

// pass reports whether a record may be logged now, and how many of its kind were held back before
// it.
func (k *logKinds) pass(kind logKind, now time.Time) (more uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.kinds[kind]
	if r == nil && len(k.kinds) >= mostKinds {
		kind = logKind{}
		r = k.kinds[kind]
	}
	if r == nil {
		r = new(logRate)
		k.kinds[kind] = r
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
