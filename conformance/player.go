package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// patience is the default time limit of the peer for a step.
const patience = 5 * time.Second

// The features of section 7.
const (
	featureResume   = 1
	featureMetadata = 2
)

// skipReason is the reason why a scenario is not played.
type skipReason struct{ reason string }

func (s skipReason) Error() string { return s.reason }

// player plays one scenario. It belongs to one goroutine.
type player struct {
	suite      *suite
	peers      peers
	connecting bool
	without    []string // missing features of the peer that its Sync does not show
	patience   time.Duration

	link  *peerLink
	names map[string]any          // values of $name and of expressions
	parts map[any]*partialMessage // by pipe
	pings int64                   // sent so far by the steps "alive"
}

// The keys of the Sync with numbers, and their value if absent.
var announced = map[string]struct{ key, absent int64 }{
	"features": {3, 0}, "max_message": {4, 0}, "early": {5, 0}, "opens": {6, 0}, "ping": {7, 0}, "timeout": {8, 0},
	"overhead": {13, 512}, "nested_room": {14, 0}, "nested_calls": {15, 0}, "peer_received": {12, 0}, "extra": {16, 0},
}

// play plays a scenario. The error is a [skipReason], or has the failed step and the reason.
func (p *player) play(ctx context.Context, sc scenario) (err error) {
	if sc.Role != "" && (sc.Role == "connects") != p.connecting {
		return skipReason{"the player " + sc.Role + " in it"}
	}
	for _, n := range sc.Needs {
		if slices.Contains(p.without, n) {
			return skipReason{"the peer is without " + n}
		}
	}
	if err := p.prepare(sc); err != nil {
		return err
	}
	if p.link, err = p.peers.next(ctx, nil); err != nil {
		return err
	}
	defer func() { p.link.close() }()
	if sc.Handshake == nil || *sc.Handshake {
		sequence := "handshake of the accepting side"
		if p.connecting {
			sequence = "handshake of the connecting side"
		}
		if err := p.steps(ctx, p.suite.Sequences[sequence]); err != nil {
			return fmt.Errorf("handshake: %w", err)
		}
		if err := p.needs(sc); err != nil {
			return err
		}
	}
	return p.steps(ctx, sc.Steps)
}

// prepare sets the initial names of the scenario.
func (p *player) prepare(sc scenario) error {
	id, secret := make([]byte, 16), make([]byte, 16)
	rand.Read(id)
	rand.Read(secret)
	p.names = map[string]any{"own": int64(1), "theirs": int64(0), "run": rand.Text(), "sent": int64(0), "received": int64(0)}
	sync := map[string]any{
		"1": "h'706c61796572'", "3": int64(featureMetadata), "4": int64(1 << 20), "5": int64(4096), "6": int64(2 << 20),
		"9": []any{"cbor"}, "14": int64(1 << 20), "15": int64(64),
	}
	if slices.Contains(sc.Needs, "resume") {
		sync["3"] = int64(featureMetadata | featureResume)
	}
	if p.connecting {
		p.names["own"], p.names["theirs"] = int64(0), int64(1)
	} else {
		p.names["session"] = id
		sync["2"] = "$session"
		if slices.Contains(sc.Needs, "resume") {
			p.names["secret"] = secret
			sync["11"] = "$secret"
		}
	}
	maps.Copy(sync, sc.Sync)
	return p.setSync(sync)
}

// setSync makes $sync, the fields of the player's own Sync; those that are null are left out.
func (p *player) setSync(fields map[string]any) error {
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
	v, err := value(fields, p.names)
	p.names["sync"] = v
	return err
}

// needs returns an error if the peer, by its Sync, does not have the features that a scenario
// needs.
func (p *player) needs(sc scenario) error {
	has := map[string]string{
		"resume": "features - features / 2 * 2 > 0", "metadata": "features / 2 - features / 4 * 2 > 0",
		"windows": "early > 0", "opens": "opens > 0", "nested": "nested_room > 0",
	}
	for _, n := range sc.Needs {
		condition, known := has[n]
		if !known && !strings.ContainsAny(n, "<>") {
			continue // is for -without alone
		}
		if !known {
			condition = n
		}
		if yes, err := calculate(condition, p.names); err != nil {
			return err
		} else if yes == 0 {
			return skipReason{"the peer has not announced " + n}
		}
	}
	return nil
}

func (p *player) steps(ctx context.Context, steps []step) error {
	for i, st := range steps {
		a, err := st.act()
		if err != nil {
			return err
		}
		within := p.patience
		if ms, ok := st["within"]; ok {
			n, err := number(ms, p.names)
			if err != nil {
				return err
			}
			within = p.scaled(time.Duration(n) * time.Millisecond)
		}
		if err := a(p, ctx, within, st); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// scaled returns a time limit of a scenario, scaled by the patience.
func (p *player) scaled(limit time.Duration) time.Duration {
	return time.Duration(float64(limit) * p.patience.Seconds() / patience.Seconds())
}

// read returns the next frame of the peer, and records it.
func (p *player) read(ctx context.Context) ([]any, error) {
	frame, err := p.link.next(ctx)
	if err != nil {
		return nil, err
	}
	list, err := decode(frame)
	if err != nil {
		return nil, err
	}
	if countable(list) {
		p.names["received"] = p.names["received"].(int64) + 1
	}
	switch {
	case kind(list) == "0 1" && len(list) == 4:
		p.takeSync(list[3])
	case kind(list) == "0 4" && len(list) >= 4:
		p.takeCredit(list[2:])
	}
	return list, nil
}

// takeCredit records the credit of the peer: for Opens in opens and extra, and for pipes in limit.
func (p *player) takeCredit(fields []any) {
	names := []string{"limit"}
	if fields[0] == nil {
		names = []string{"opens", "extra"}
	}
	for i, name := range names[:min(len(names), len(fields)-1)] {
		n, _ := fields[i+1].(int64)
		if old, _ := p.names[name].(int64); n > old {
			p.names[name] = n
		}
	}
}

// takeSync records the announcements of the peer as names.
func (p *player) takeSync(fields any) {
	m, _ := fields.(map[any]any)
	for name, a := range announced {
		p.names[name] = a.absent
		if n, ok := m[a.key].(int64); ok {
			p.names[name] = n
		}
	}
	if p.connecting {
		for key, name := range map[int64]string{2: "session", 11: "secret"} {
			if b, ok := m[key].([]byte); ok {
				p.names[name] = b
			}
		}
	}
}

// kind returns the first element of a frame, and of a Control the second one as well.
func kind(list []any) string {
	switch {
	case len(list) > 1 && list[0] == int64(0):
		return fmt.Sprint(0, " ", list[1])
	case len(list) > 0:
		return fmt.Sprint(list[0])
	}
	return ""
}

// countable reports whether a frame is one of section 14 that is counted.
func countable(list []any) bool {
	return slices.Contains([]string{"1", "2", "3", "4", "0 4", "0 6", "0 8", "0 9"}, kind(list))
}

// tolerate reports whether a peer may send this at any time. It answers a Ping.
func (p *player) tolerate(ctx context.Context, list []any) (bool, error) {
	switch kind(list) {
	case "0 2":
		return true, p.send(ctx, []any{int64(0), int64(3), list[2]})
	case "0 4", "0 9":
		return true, nil
	case "0 5":
		return p.names["sync"].(map[any]any)[int64(3)].(int64)&featureResume != 0, nil
	}
	return false, nil
}

// send sends a message of the notation, or raw bytes.
func (p *player) send(ctx context.Context, v any) error {
	frame, raw := v.([]byte)
	if !raw {
		var err error
		if frame, err = encoding.Marshal(v); err != nil {
			return err
		}
		if countable(asList(v)) {
			p.names["sent"] = p.names["sent"].(int64) + 1
		}
	}
	if err := p.link.send(ctx, frame); err != nil {
		return fmt.Errorf("send %s: %w", show(v), err)
	}
	return nil
}

// late converts an error that may be a timeout.
func late(err error, wanted string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("expected %s; nothing came in time", wanted)
	}
	return fmt.Errorf("expected %s; %w", wanted, err)
}
