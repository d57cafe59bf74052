package limits

import "fmt"

// The least numbers of a [Plan]. LeastOverhead is more than anything that waits really holds
// besides its content. A peer that is not told otherwise counts with it.
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
	// bytes that at least fit into a window besides the overhead of one message
	leastContent  = 1 << 10
	mostContent   = 16 << 10 // bytes up to which windows are guaranteed, if there are few workers
	mostCallers   = 64       // windows that are guaranteed to calls of this side
	leastNested   = 256      // calls within calls
	workersNested = 32       // calls within calls for each worker
	mostStrings   = 1 << 10  // bytes of strings in the meta of the largest Open
)

// Plan is how one side divides its room into what it promises its peer. Whatever the peer may send
// without asking has its place in one of the shares, and together they are the soft limit. All
// numbers but the counts are bytes of cost: the content of a message and Overhead.
type Plan struct {
	Room     int // all of it
	Largest  int // payload of the largest message
	Overhead int // what each message costs besides its content
	Window   int // what is guaranteed to each stream, and what its Open pays in advance

	Opens       int // for calls that wait for a worker
	Nested      int // for calls of the peer within calls
	NestedOwn   int // for the streams of calls of this side within calls
	NestedCalls int // how many of either
	Large       int // for Blocks that do not fit into their windows: one of the largest
	Workers     int // how many running handlers have their Window guaranteed
	Callers     int // how many streams that this side has opened have
	Spare       int // what windows grow by

	urgent int // of Opens as the peer was told them first, what it may keep for urgent calls
}

// NewPlan divides the soft limit of a direction, in which 0 is no limit, for messages of at most
// largest bytes and for so many workers. The error says which numbers do not fit, and what would.
func NewPlan(soft Amount, largest, workers int) (Plan, error) {
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
	p.Window = min(max(p.Room/8/max(workers, 1), p.Overhead+leastContent), p.Overhead+mostContent)
	if most := MostWorkers(p.Room, messages); workers > most {
		return p, fmt.Errorf("%d workers need windows of %d bytes each: a soft limit of %v, or at most %d workers", workers, p.Window, softFor(workers, p.Room, soft.Messages), most)
	}
	p.Opens = max(p.Room/4, p.LargestOpen())
	p.urgent = min(p.Opens/8, p.Opens-p.LargestOpen())
	p.NestedOwn = p.Room / 16
	p.Nested = p.Room/4 - p.NestedOwn
	p.NestedCalls = NestedCalls(workers)
	p.Large = largest + p.Overhead
	p.Callers = max(1, min(mostCallers, p.Room/16/p.Window))
	if p.Spare = p.rest(); p.Spare < 0 {
		return p, fmt.Errorf("messages of %d bytes and %d workers leave no room for windows of %d bytes in a soft limit of %d bytes", largest, workers, p.Window, p.Room)
	}
	return p, nil
}

// resized divides a soft limit of so many bytes, 0 being none, where a peer has been told the
// numbers of p. So only Opens and Spare follow. Spare may be below 0: then not all that is
// guaranteed can be had at the same time.
//
// But no wait may be for what never comes. So the room is never smaller than what the largest
// message needs, and at least one of each: the largest Open, beside what the peer keeps for urgent
// ones, a large Block, a window of either kind, and all calls within calls.
func (p Plan) resized(bytes int) Plan {
	if bytes == 0 {
		bytes = defaultRoom
	}
	opens := p.LargestOpen() + p.urgent
	others := p.Nested + p.NestedOwn + p.Large + 2*p.Window
	p.Room = max(bytes, LeastRoom, 8*p.Largest, others+opens, perUnit(4*others, 3))
	p.Opens = max(p.Room/4, opens)
	p.Spare = p.rest()
	return p
}

// rest returns what no share but Spare has.
func (p *Plan) rest() int {
	return p.Room - p.Opens - p.Nested - p.NestedOwn - p.Large - (p.Workers+p.Callers)*p.Window
}

// MostHeld returns for how many bytes a message of so much content counts at most while it waits.
// That is what it costs at least, so that a peer which keeps to what it was promised never reaches
// the soft limit. What the message really holds is mostly less. At some sizes it is more, since an
// allocator gives whole pages: up to a fifth, just above 32 KiB.
func MostHeld(content int) int { return content + LeastOverhead }

// NestedCalls returns how many calls within calls may run beside so many workers.
func NestedCalls(workers int) int { return max(leastNested, workersNested*workers) }

// MostWorkers returns how many workers have room for their windows in a soft limit of so many bytes
// and messages, neither of which is 0.
func MostWorkers(bytes, messages int) int {
	bytes, messages = max(bytes, LeastRoom), max(messages, LeastMessages)
	overhead := max(LeastOverhead, perUnit(bytes, messages))
	return max(1, bytes/8/(overhead+leastContent))
}

// softFor returns a soft limit, no smaller than the one given, in which so many workers have room
// for their windows. Where there is no limit of messages, it has none.
func softFor(workers, bytes, messages int) Amount {
	bytes = max(bytes, 8*workers*(LeastOverhead+leastContent))
	if messages > 0 {
		messages = max(messages, perUnit(bytes, bytes/8/workers-leastContent))
	}
	return Amount{Messages: messages, Bytes: bytes}
}

// perUnit returns how much of all falls to each unit, rounded up.
func perUnit(all, units int) int { return (all + units - 1) / units }

// LargestOpen is the cost of the largest Open.
func (p *Plan) LargestOpen() int { return p.Largest + mostStrings + p.Overhead + p.Window }
