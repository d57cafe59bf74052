package main

import "fmt"

const sumLine = "%-64s %16s %16s\n"

// summary tells what has become of all calls, and how often what was noted, and how many wires were
// cut.
func (s *screen) summary(ofAgents, ofReplicas balance, noted map[string]int, cut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n"+sumLine, "", "agents to orders", "orders to agents")
	tell := func(what string, a, b int) { fmt.Fprintf(s.out, sumLine, what, thousands(a), thousands(b)) }
	tell("calls made", ofAgents.made, ofReplicas.made)
	tell("answered", ofAgents.answered, ofReplicas.answered)
	tell("  of these "+throughExchange, ofAgents.exchanged, ofReplicas.exchanged)
	for _, why := range whys(ofAgents, ofReplicas) {
		tell("failed: "+why, ofAgents.failed[why], ofReplicas.failed[why])
	}
	tell("doubled", ofAgents.doubled, ofReplicas.doubled)
	tell("lost", ofAgents.lost, ofReplicas.lost)
	tell("ran, though their error says they did not", ofAgents.untrue, ofReplicas.untrue)
	fmt.Fprintf(s.out, "\n"+sumLine, "orders are durable calls", "", "")
	only := func(what string, n int) { fmt.Fprintf(s.out, sumLine, what, thousands(n), "") }
	for _, what := range []string{madeAgain, fromAnother, fromBefore} {
		only("  "+what, noted[what])
	}
	fmt.Fprintln(s.out)
	only("wires that were cut", cut)
	for _, what := range []string{resumedThere, resumedElsewhere, resumedInNATS, resumedAtExchange} {
		only(what, noted[what])
	}
}
