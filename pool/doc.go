// Package pool calls services that run on several servers. A [Pool] is a Caller over all of them.
// It keeps a connection to each server and balances calls by the load of the servers. A call that
// certainly did not run is retried on another server, so that a graceful restart or an outage of a
// server loses no call. A [Resolver] yields the addresses of the servers: [Fixed] is a list, [DNS]
// looks names up repeatedly, and any function that yields sets of addresses is a Resolver, too.
//
// The choice between two servers follows Mitzenmacher, The Power of Two Choices in Randomized Load
// Balancing (2001), with the latency as the weight. If both are bad, the call uses the best server
// known, after Mitzenmacher, Prabhakar and Shah, Load Balancing with Memory (2002). A key is mapped
// to a server by rendezvous hashing (Thaler and Ravishankar, 1998).
package pool
