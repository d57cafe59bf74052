package main

import (
	"time"

	"github.com/asterisque-go/asterisque"
)

// The contract: what the processes may ask of each other.
var (
	// Offered by the replicas.
	placeOrder = asterisque.Func[order, receipt](1, "place order")

	// Offered by the agents, which have no address.
	howFull = asterisque.Func[question, van](2, "how full is your van?")

	// Offered by each process to the control.
	// Its parameter says that P99 is to begin anew.
	look = asterisque.Func[bool, figures](10, "look")

	// audit stops a process from making calls until the caller has sent its last Block. Once its
	// calls have ended the process sends an empty Block; after the next Block of the caller all
	// lines that its journal has by then, and an empty Block again. The result is how many lines.
	audit = asterisque.Stream[struct{}, struct{}, []string, int](11, "audit")
)

// The names in the cluster.
const (
	ordersName = "orders" // the replicas
	agentsName = "agents"
	depotsName = "depots" // the processes in which agents are
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

// figures are what a process has done since it was started.
type figures struct {
	Served, Made, Answered, Failed int64
	P99                            time.Duration // of its calls, since it has begun anew
	Sessions                       int           // on which it may call now
}
