package main

import (
	"time"

	"github.com/asterisque-go/asterisque"
)

// The contract: the functions that the processes offer to each other.
var (
	// Offered by the replicas.
	placeOrder = asterisque.Func[order, receipt](1, "place order")

	// Offered by the agents, which have no address.
	howFull = asterisque.Func[question, van](2, "how full is your van?")

	// Offered by each process to the control. Its parameter resets P99.
	look = asterisque.Func[bool, figures](10, "look")

	// audit stops the calls of a process until the caller has sent its last Block. After its calls
	// have ended the process sends an empty Block; after the next Block of the caller it sends all
	// lines of its journal, and an empty Block again. The result is the number of lines.
	audit = asterisque.Stream[struct{}, struct{}, []string, int](11, "audit")
)

// The names in the cluster.
const (
	ordersName = "orders" // the replicas
	agentsName = "agents"
	depotsName = "depots" // the processes with agents
)

// number is the unique number of one call. It stays unique across restarts.
type number struct {
	Caller string // the id of a node
	N      uint64 // from 1
}

type order struct {
	Number  number
	Parcels int
}

type receipt struct {
	Number  number // of the order
	Replica string // that has run it
}

type question struct{ Number number }

type van struct {
	Agent   string
	Percent int
}

// figures are the counters of a process since its start.
type figures struct {
	Served, Made, Answered, Failed int64
	P99                            time.Duration // of its calls, since the last reset
	Sessions                       int           // for calls now
}
