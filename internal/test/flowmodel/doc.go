// Package flowmodel plays sessions in memory, with applications that do anything that honest ones
// may do, and detects sessions that stand still or grant more than their room. It is for tests.
//
// A session is two ends and two wires of bounded room. Each possible next event belongs to an
// actor, and a random actor takes the next step: an application, the reader or the writer of an
// end, or a worker. No actor waits for a clock, so a session stands still when no actor can take a
// step. That is allowed only after the end of all calls but those of applications that sleep for
// ever. Then these are cancelled, and no resource may be held any more.
//
// The grants are those of package flow: a Plan of random numbers, Opens, a Budget, and Counters at
// the limits. The behaviour of pipes, dispatchers and the outbox is implemented here again, in a
// short form without locks: sending.go, receiving.go, parts.go and debt.go are package piping,
// dispatcher.go the dispatcher, credit.go and outbound.go the waits of Opens and messages.
//
// Blocks expire, idle directions hand credit back, and limits change in the middle. A loss of wires
// is a delay, since a resumed session sends the lost frames again, in their order. The model has no
// StopReading, no concurrency limit, no key, and one sender and one receiver in each direction.
// Without clocks, a granted Block always comes, or is given up.
package flowmodel
