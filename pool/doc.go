// Package pool is for services that run on several servers. A [Pool] is a Caller over all of them:
// it keeps a connection to each, spreads calls by what each is able to do, and makes a call that
// certainly did not run again on another one, so that a server which is restarted in good order, or
// is away, costs no call. A [Resolver] says where the servers are now: [Fixed] is a list, [DNS]
// looks names up again and again, and any function that yields sets of addresses is one, too.
//
// Which of two servers gets a call follows Mitzenmacher, The Power of Two Choices in Randomized
// Load Balancing (2001), with the latency as the weight; that two bad ones give way to the best one
// known follows Mitzenmacher, Prabhakar and Shah, Load Balancing with Memory (2002). A key belongs
// to a server by rendezvous hashing (Thaler and Ravishankar, 1998).
package pool
