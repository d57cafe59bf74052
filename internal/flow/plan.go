package flow

import (
	"fmt"

	"github.com/asterisque-go/asterisque/limits"
)

// The minimum values of a [Plan]. LeastOverhead exceeds the real overhead of every message that
// waits. It is also the overhead that a peer assumes unless the handshake names another one.
const (
	LeastOverhead = 512
	LeastMessages = 64
	LeastRoom     = 64 << 10
)

// The room of a session without a soft limit.
const (
	defaultMessages = 64 << 10
	defaultRoom     = 32 << 20
)

const (
	// minimum content, in bytes, that fits into a window besides the overhead of one message
	leastContent  = 1 << 10
	mostContent   = 16 << 10 // content up to which windows are guaranteed if there are few workers
	mostCallers   = 64       // guaranteed windows for calls of this side
	mostExtra     = 1 << 30  // bytes of extra credit, so that it fits a Hold
	leastNested   = 256      // nested calls
	workersNested = 32       // nested calls for each worker
	mostStrings   = 1 << 10  // bytes of strings in the meta of the largest Open
)

// Plan divides the room of one side into the shares that it grants to its peer. Every byte that a
// peer may send without asking is covered by one of the shares, and the shares add up to the soft
// limit. All numbers but the counts are bytes of cost: the content of a message and Overhead.
type Plan struct {
	Room     int // all shares together
	Largest  int // payload of the largest message
	Overhead int // cost of each message besides its content
	Window   int // guaranteed to each stream, and paid in advance by its Open

	Opens       int // for calls that wait for a worker
	Nested      int // for nested calls of the peer
	NestedOwn   int // for the streams of nested calls of this side
	NestedCalls int // number of nested calls of either side
	Large       int // for Blocks that do not fit into their windows: one of the largest
	Workers     int // number of running handlers with a guaranteed Window
	Callers     int // number of streams of this side with a guaranteed Window
	Elastic     int // the rest; at least an eighth of Room in a new Plan
	Extra       int // part of Elastic: the initial extra credit

	urgent int // part of the first credit of Opens that the peer may keep for urgent calls
}

// NewPlan divides the soft limit of a direction, in which 0 means no limit, for messages of at most
// largest bytes and the given number of workers. The error names the numbers that do not fit, and
// numbers that would.
func NewPlan(soft limits.Amount, largest, workers int) (Plan, error) {
	p := Plan{Room: soft.Bytes, Largest: largest, Workers: workers}
	if p.Room == 0 {
		p.Room = max(defaultRoom, 8*largest)
	}
	p.Room = max(p.Room, LeastRoom)
	messages := max(soft.Messages, LeastMessages)
	if soft.Messages == 0 {
		messages = max(defaultMessages, perUnit(p.Room, LeastOverhead))
	}
	p.Overhead = max(LeastOverhead, perUnit(p.Room, messages))
	if most := p.Room / 8; largest > most {
		return p, fmt.Errorf("messages of %d bytes need a soft limit of %d bytes, eight times as much, not %d", largest, 8*largest, p.Room)
	}
	p.Window = max(min(p.Room/8/max(workers, 1), p.Room/32, p.Overhead+mostContent), p.Overhead+leastContent)
	if most := MostWorkers(p.Room, messages); workers > most {
		return p, fmt.Errorf("%d workers need windows of %d bytes each: a soft limit of %v, or at most %d workers", workers, p.Window, softFor(workers, p.Room, soft.Messages), most)
	}
	p.Opens = max(p.Room/8, p.LargestOpen()+p.Room/16)
	p.urgent = min(p.Opens/8, p.Opens-p.LargestOpen())
	p.NestedOwn = p.Room / 32
	p.Nested = max(p.Room/8, p.LargestOpen())
	p.NestedCalls = NestedCalls(workers)
	p.Large = largest + p.Overhead
	p.Callers = max(1, min(mostCallers, p.Room/16/p.Window))
	p.Elastic = p.rest()
	p.Extra = min(p.Elastic/8, mostExtra)
	return p, nil
}

// resized returns a Plan for a new soft limit of the given bytes, 0 being none, after the peer was
// sent the numbers of p. Therefore only Elastic changes. The room is never smaller than the other
// shares and the extra credit.
func (p Plan) resized(bytes int) Plan {
	if bytes == 0 {
		bytes = defaultRoom
	}
	room := max(bytes, p.Room-p.Elastic+p.Extra)
	p.Room, p.Elastic = room, p.Elastic+room-p.Room
	return p
}

// rest returns the part of the room that no share but Elastic takes.
func (p *Plan) rest() int {
	return p.Room - p.Opens - p.Nested - p.NestedOwn - p.Large - (p.Workers+p.Callers)*p.Window
}

// Held returns the count, in bytes, of a message of the given content while it waits. It equals the
// lowest cost of such a message, so a peer that respects its credit never reaches the soft limit.
// The memory of a message differs from it by less than a fifth, except that a small message holds
// less than its overhead.
func Held(content int) int { return content + LeastOverhead }

// NestedCalls returns the number of nested calls that may run beside the given number of workers.
func NestedCalls(workers int) int { return max(leastNested, workersNested*workers) }

// MostWorkers returns the number of workers with room for their windows in a soft limit of the
// given bytes and messages, neither of which is 0.
func MostWorkers(bytes, messages int) int {
	bytes, messages = max(bytes, LeastRoom), max(messages, LeastMessages)
	overhead := max(LeastOverhead, perUnit(bytes, messages))
	return max(1, bytes/8/(overhead+leastContent))
}

// softFor returns a soft limit, no smaller than the given one, with room for the windows of the
// given number of workers. Without a limit of messages, the result has none either.
func softFor(workers, bytes, messages int) limits.Amount {
	bytes = max(bytes, 8*workers*(LeastOverhead+leastContent))
	if messages > 0 {
		messages = max(messages, perUnit(bytes, bytes/8/workers-leastContent))
	}
	return limits.Amount{Messages: messages, Bytes: bytes}
}

// perUnit returns the share of each unit in all, rounded up.
func perUnit(all, units int) int { return (all + units - 1) / units }

// LargestOpen returns the cost of the largest Open.
func (p *Plan) LargestOpen() int { return p.Largest + mostStrings + p.Overhead + p.Window }

// Minimum returns the bytes of a class that no other class may take.
func (p *Plan) Minimum(c Class) int {
	switch c {
	case Served:
		return p.Workers * p.Window
	case Made:
		return p.Callers * p.Window
	case Nested:
		return p.NestedOwn
	case Large:
		return p.Large
	case Elastic:
		return p.Elastic
	}
	return 0
}
