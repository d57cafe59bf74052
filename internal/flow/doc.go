// Package flow is the flow control of a session, below all that sends and receives: budgets,
// counts, and queues of requests that wait for room. It knows neither calls nor sessions.
//
// A [Plan] divides the inbound soft limit into classes. A [Budget] grants those for Blocks to the
// peer, as a [Window] for each stream, and [Opens] the one for calls. A [Credit] is room for which
// the calls of this side wait: that of the peer, or the outstanding calls of a function. A
// [Counter] compares the messages that one direction holds with a soft and a hard limit. Whatever
// waits for one of them is a [Waiter] in a [Queue]. A [Tally] adds up the memory of many sessions.
package flow
