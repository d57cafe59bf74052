package asterisque

import (
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Path is the estimate of a session for the path over its present Wire to the peer, in the outbound
// direction. The session measures with marks: Pings within large transfers. The answer to a mark
// confirms that the bytes before it have been read. The estimates are those of BBR (Cardwell et al.
// 2016). A session that sends little knows only the round trip.
type Path struct {
	RoundTrip time.Duration `json:"round_trip_ns"` // minimum of about ten seconds; 0: unknown
	Rate      float64       `json:"rate"`          // delivered bytes a second; 0: unknown
	// bytes that were sent and are not known to have been read
	InFlight int `json:"in_flight"`
	Limit    int `json:"limit"` // bytes that may be in flight; 0: no limit yet
	// present bound of the sending rate
	Bound PathBound `json:"bound"`
}

// String returns p for logs.
func (p Path) String() string {
	return fmt.Sprintf("%v, %.0f bytes/s, %d of %d bytes in flight, bound by the %s", p.RoundTrip, p.Rate, p.InFlight, p.Limit, p.Bound)
}

// LogValue implements slog.LogValuer.
func (p Path) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Duration("round_trip", p.RoundTrip), slog.Float64("rate", p.Rate), slog.Int("in_flight", p.InFlight),
		slog.Int("limit", p.Limit), slog.String("bound", p.Bound.String()),
	)
}

// PathBound is the bound of a session's sending rate.
type PathBound uint8

const (
	BoundByApplication PathBound = iota // nothing waits: the application sends no more
	// streams wait until the peer's application has taken earlier Blocks
	BoundByWindow
	BoundByRoom // calls wait for budget of the peer, or streams for budget here
	BoundByPath // messages wait until the bytes in flight have been read
	BoundByPeer // as BoundByPath, but the peer has not read for long
)

var pathBounds = [...]string{"application", "window", "room", "path", "peer"}

// String returns "application", "window", "room", "path" or "peer".
func (b PathBound) String() string {
	if int(b) < len(pathBounds) {
		return pathBounds[b]
	}
	return fmt.Sprintf("PathBound(%d)", uint8(b))
}

// MarshalText implements encoding.TextMarshaler.
func (b PathBound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error names an invalid text.
func (b *PathBound) UnmarshalText(text []byte) error {
	i := slices.Index(pathBounds[:], string(text))
	if i < 0 {
		return fmt.Errorf("asterisque: %q does not bound a path", text)
	}
	*b = PathBound(i)
	return nil
}

// Path returns the present estimate of the path to the peer. It does not block.
func (s *Session) Path() Path {
	if s == nil {
		return Path{}
	}
	return pathOf(s)
}

func pathOf(s *Session) Path {
	p := s.calls.Carrier.Path()
	return Path{RoundTrip: p.RoundTrip, Rate: p.Rate, InFlight: p.InFlight, Limit: p.Limit, Bound: boundOf(s, p.Full, p.Late)}
}

func boundOf(s *Session, full, late bool) PathBound {
	windows, room := s.calls.WaitsFor()
	switch {
	case late:
		return BoundByPeer
	case full:
		return BoundByPath
	case windows:
		return BoundByWindow
	case room:
		return BoundByRoom
	}
	return BoundByApplication
}
