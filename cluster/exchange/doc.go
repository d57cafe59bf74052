// Package exchange lets nodes reach each other that can only dial out, and that do not know each
// other: machines behind translations of addresses, in plants and in homes, of several networks.
// They connect to an exchange, with package agent, and are known there by a name, such as "orders",
// and an id.
//
//	x, err := exchange.New(exchange.Config{Policy: []exchange.Rule{{From: "shop", To: "orders"}}})
//	err = x.ListenAndServe(ctx, "tls://:5330")
//
// # What is relayed
//
// The exchange relays sessions: frames, and not calls. Priorities, windows, loss, times to live and
// cancellation are those of the two nodes, who also agree on codecs and limits with each other; the
// exchange knows nothing of the functions. Each relayed session has a window of its own on the way:
// one whose receiver does not read holds up its sender, and neither others nor the exchange.
//
// A node has one connection with the exchange, over which all its sessions run. If that is lost,
// both resume it; if the exchange is started again, nodes connect anew, and so do their sessions,
// which go on where both nodes have [asterisque.WithResume].
//
// # Who may reach whom
//
// [Config].Policy says it, by the identities that nodes have proved: as [asterisque.Access] of the
// exchange has granted it (Grant.Subject), or by the certificate of the node. Without a rule nobody
// may reach anybody, nor learn that somebody is there. The exchange can read what it relays.
package exchange
