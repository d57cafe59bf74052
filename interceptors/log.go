package interceptors

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// Log writes one line for each call, at its end, for both sides; that of a stream when the stream
// ends. Of the calls that succeed one in every is at level Info, the first one included, and the
// others are at Debug; 0 is none at Info. Those that fail are at Warn with their error, but ten in
// a second at most, so that peers cannot fill a disk, and the others at Debug; the next Warn says
// how many those were (more). It panics if log is nil or every negative.
//
// The attributes are function, the number, and name; side, "made" or "served"; subject, who the
// peer is, if [asterisque.Access].Accept has said so, and address, where it is; took; and outcome,
// "ok" or what the code of the error means. Calls around a Connection do not know their peer.
func Log(log *slog.Logger, every int) asterisque.Interceptor {
	switch {
	case log == nil:
		panic("interceptors: Log: the logger is nil: give it slog.Default(), or leave the interceptor out")
	case every < 0:
		panic(fmt.Sprintf("interceptors: Log: one in %d calls: it has to be positive, or 0 for none", every))
	}
	l := &callLog{log: log, every: uint64(every), warn: rate.NewLimiter(warnings, warnings)}
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		begin := time.Now()
		about := describe(c)
		return toTheEnd(ctx, c, next, func(err error) { l.end(ctx, about, time.Since(begin), err) })
	}
}

const (
	warnings     = 10      // in a second
	longestError = 1 << 10 // bytes of the text of an error, which may be the peer's
)

// callLog logs what becomes of calls.
type callLog struct {
	log   *slog.Logger // fixed, as every
	every uint64
	warn  *rate.Limiter // these lock themselves

	good atomic.Uint64 // calls that succeeded
	left atomic.Uint64 // failures since the last one that was at Warn
}

// describe returns what is known of a call before its end.
func describe(c *asterisque.Call) []slog.Attr {
	side := "made"
	if c.Served() {
		side = "served"
	}
	about := []slog.Attr{slog.Int("function", int(c.Function())), slog.String("name", c.Name()), slog.String("side", side)}
	if s := c.Session(); s != nil {
		p := s.Peer()
		if p.Subject != "" {
			about = append(about, slog.String("subject", p.Subject))
		}
		if p.RemoteAddr != nil {
			about = append(about, slog.String("address", p.RemoteAddr.String()))
		}
	}
	return about
}

// end logs a call. A handler of the log that panics costs the call nothing.
func (l *callLog) end(ctx context.Context, about []slog.Attr, took time.Duration, err error) {
	defer func() { _ = recover() }()
	level, more := l.level(err)
	if !l.log.Enabled(ctx, level) {
		return
	}
	about = append(about, slog.Duration("took", took), slog.String("outcome", outcome(err)))
	if err != nil {
		text := err.Error()
		about = append(about, slog.String("error", strings.ToValidUTF8(text[:min(len(text), longestError)], "")))
	}
	if more > 0 {
		about = append(about, slog.Uint64("more", more))
	}
	l.log.LogAttrs(ctx, level, "call", about...)
}

// level returns the level for an outcome, and how many failures were not at Warn since the last
// one.
func (l *callLog) level(err error) (level slog.Level, more uint64) {
	switch {
	case err == nil && l.every > 0 && (l.good.Add(1)-1)%l.every == 0:
		return slog.LevelInfo, 0
	case err == nil:
		return slog.LevelDebug, 0
	case l.warn.Allow():
		return slog.LevelWarn, l.left.Swap(0)
	}
	l.left.Add(1)
	return slog.LevelDebug, 0
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return codec.AbortOf(err).Code.String()
}
