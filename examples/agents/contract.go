package main

import "github.com/asterisque-go/asterisque"

// The contract: the functions that servers and agents offer to each other.
var (
	// Offered by the servers.
	report = asterisque.Func[state, int](1, "report") // returns the number of calls by this agent

	// news sends a line now and then, until the server drains; its result is the number of lines.
	news = asterisque.Stream[struct{}, struct{}, string, int](2, "news")

	// Offered by the agents, which cannot be dialled: a server calls them on the sessions that the
	// agents have dialled.
	describe = asterisque.Func[struct{}, machine](10, "describe")

	// execute runs a command, and sends each line of its output; its result is the number of lines.
	execute = asterisque.Stream[command, struct{}, string, int](11, "execute")
)

// state is the report of an agent. It has no name: the certificate has the name.
type state struct {
	Running int // commands
}

// machine describes the agent's machine.
type machine struct {
	Agent, System, Architecture, Go string
}

// command is one of the agent's commands. No shell is involved.
type command struct {
	Name  string
	Lines int // for count
}
