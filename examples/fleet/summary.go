package main

import "fmt"

const (
	sumLine  = "%-64s %16s %16s\n"
	wireLine = "%-64s %16s\n"
)

// summary prints the outcome of all calls, and further events. cut is how many wires were cut.
func (s *screen) summary(ofAgents, ofReplicas balance, noted map[string]int, cut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n"+sumLine, "", "agents to orders", "orders to agents")
	tell := func(what string, a, b int) { fmt.Fprintf(s.out, sumLine, what, thousands(a), thousands(b)) }
	tell("calls made", ofAgents.made, ofReplicas.made)
	tell("answered", ofAgents.answered, ofReplicas.answered)
	tell("answered "+throughExchange, ofAgents.exchanged, ofReplicas.exchanged)
	for _, what := range []string{madeAgain, fromAnother} {
		// the other calls are not durable
		fmt.Fprintf(s.out, sumLine, what, thousands(noted[what]), "-")
	}
	for _, why := range whys(ofAgents, ofReplicas) {
		tell("failed: "+why, ofAgents.failed[why], ofReplicas.failed[why])
	}
	tell("doubled", ofAgents.doubled, ofReplicas.doubled)
	tell("lost", ofAgents.lost, ofReplicas.lost)
	tell("ran, though their error says they did not", ofAgents.untrue, ofReplicas.untrue)
	fmt.Fprintln(s.out)
	fmt.Fprintf(s.out, wireLine, "wires cut", thousands(cut))
	for _, what := range []string{resumedThere, resumedElsewhere, resumedInNATS, resumedAtExchange} {
		fmt.Fprintf(s.out, wireLine, what, thousands(noted[what]))
	}
}
