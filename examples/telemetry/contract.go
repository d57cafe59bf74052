package main

import (
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/priority"
)

// The contract: three things that share one session, and what each is worth when the link is too
// slow for all of them.
var (
	// readings takes what a sensor measures. The Blocks are raw bytes: each begins with its number
	// among those that were sent.
	readings = asterisque.Stream[struct{}, []byte, struct{}, tally](1, "readings")

	// upload takes bytes and returns the SHA-256 of them.
	upload = asterisque.Stream[struct{}, []byte, struct{}, []byte](2, "upload")

	// command is answered with what it was called with.
	command = asterisque.Func[[]byte, []byte](3, "command")
)

// The priorities.
const (
	urgent = priority.Priority(100)
	normal = priority.Normal
	low    = priority.Priority(-100)
)

const (
	readingSize = 512 // bytes
	// of 127: about half may be left out while the link is busy
	readingLoss   = 64
	readingTTL    = 200 * time.Millisecond // an older one is of no use
	readingsEach  = 5 * time.Millisecond   // a sensor delivers several at a time
	readingsBurst = 10                     // which makes 2,000 a second, 1 MB

	commandSize = 64 // bytes
	commandEach = 20 * time.Millisecond
)

// tally is what the receiver of readings has counted.
type tally struct {
	Delivered, Skipped uint64
}
