// Package flowmodel plays sessions in memory, with applications that do all that honest ones may,
// and looks whether one stands still or promises more than it has room for. It is for tests.
//
// A session is two ends and two wires of bounded room. Whatever could happen next is an actor, and
// a random one takes the next step: an application, the reader or the writer of an end, a worker.
// Nothing waits for a clock, so that a session in which nobody can take a step stands still. It may
// do so when all calls have ended but those of applications that sleep for ever. Then these are
// cancelled, and nothing may be left at all.
//
// The promises are those of package limits: a Plan of random numbers, Opens, a Room, and Counters
// at the limits. What pipes, dispatchers and the way out do around them is said again here, in few
// words and without locks: sending.go, receiving.go and asking.go are package pipe,
// work_dispatcher.go the dispatcher, credit.go and outbound.go what Opens and messages wait for.
//
// There is no loss of wires, no Pause, no change of limits, no gate and no key.
package flowmodel
