// Package flow is the flow control of a session, below all that sends and receives: budgets,
// counts, and queues of requests that wait for room. It knows neither calls nor sessions.
//
// A [Counter] compares the messages that one direction holds with a soft and a hard limit. A [Plan]
// divides the inbound soft limit into shares. A [Room] grants the shares for Blocks to the peer,
// and [Opens] the one for calls. A [Queue] is room for which the calls of this side wait: credit of
// the peer, or the window of a function. A [Tally] adds up the memory of many sessions.
package flow
