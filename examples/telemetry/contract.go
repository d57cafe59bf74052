package main

import (
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/priority"
)

// The contract: three kinds of data that share one session, with their importance when the link is
// too slow for all of them.
var (
	// readings takes the readings of a sensor. The Blocks are raw bytes: each begins with its
	// sequence number.
	readings = asterisque.Stream[struct{}, []byte, struct{}, tally](1, "readings")

	// upload takes bytes and returns the SHA-256 of them.
	upload = asterisque.Stream[struct{}, []byte, struct{}, []byte](2, "upload")

	// command returns its parameter.
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
	// of 127: about half may be dropped while the link is busy
	readingLoss   = 64
	readingTTL    = 200 * time.Millisecond // older readings are useless
	readingsEach  = 5 * time.Millisecond   // a sensor delivers several at a time
	readingsBurst = 10                     // in total 2,000 a second, 1 MB

	commandSize = 64 // bytes
	commandEach = 20 * time.Millisecond
)

// tally is the count of readings at the receiver.
type tally struct {
	Delivered, Skipped uint64
}
