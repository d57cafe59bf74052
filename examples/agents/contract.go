package main

import "github.com/asterisque-go/asterisque"

// The contract: what servers and agents may ask of each other.
var (
	// Offered by the servers.
	report = asterisque.Func[state, int](1, "report") // returns how many this agent has made there

	// news sends a line now and then, until the server drains; its result is how many.
	news = asterisque.Stream[struct{}, struct{}, string, int](2, "news")

	// Offered by the agents, which cannot be dialled: a server calls them on the sessions that they
	// have made.
	describe = asterisque.Func[struct{}, machine](10, "describe")

	// execute runs a command, and sends each line of its output; its result is how many.
	execute = asterisque.Stream[command, struct{}, string, int](11, "execute")
)

// state is what an agent reports of itself. Its name is not there: that is what its certificate
// says.
type state struct {
	Running int // commands
}

// machine is what an agent runs on.
type machine struct {
	Agent, System, Architecture, Go string
}

// command is one of those that an agent knows. There is no shell behind it.
type command struct {
	Name  string
	Lines int // for count
}
