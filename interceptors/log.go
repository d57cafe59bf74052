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

// Log writes one line for each call at its end, on both sides. The line of a stream is written when
// the stream ends. One in every successful calls is at level Info, the first one included; the
// remaining successes are at Debug. If every is 0, no success is at Info. Failed calls are at Warn
// with their error, at most ten in a second, so that peers cannot fill a disk. Further failures are
// at Debug, and the next Warn has their number (more). Log panics if log is nil or every is
// negative.
//
// The attributes are function (the number), name, side ("made" or "served"), subject, address, took
// and outcome. The subject is the identity of the peer, if [asterisque.Access].Accept has set one.
// The address is that of the peer. The outcome is "ok" or the meaning of the error code. Calls
// around a Connection do not know their peer.
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

// callLog logs the outcomes of calls.
type callLog struct {
	log   *slog.Logger // fixed, as every is
	every uint64
	warn  *rate.Limiter // these have their own locks

	good atomic.Uint64 // calls that succeeded
	left atomic.Uint64 // failures since the last one at Warn
}

// describe returns the attributes of a call that are known before its end.
func describe(c *asterisque.Call) []slog.Attr {
	side := "made"
	if c.Inbound() {
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

// end logs a call. It recovers from a panic of the log's handler, which does not affect the call.
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

// level returns the level for an outcome, and the number of failures below Warn since the last
// Warn.
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
