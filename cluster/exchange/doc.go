// Package exchange connects nodes that can only dial out, and that do not know each other: machines
// behind network address translation, in plants and in homes, of several networks. They connect to
// an exchange, with package agent, and have a name there, such as "orders", and an id.
//
//	x, err := exchange.New(exchange.Config{Policy: []exchange.Rule{{From: "shop", To: "orders"}}})
//	err = x.ListenAndServe(ctx, "tls://:5330")
//
// # Relayed sessions
//
// The exchange relays sessions: frames, and not calls. Priorities, windows, loss, times to live and
// cancellation work between the two nodes, which also negotiate codecs and limits with each other;
// the exchange knows nothing of the functions. Each relayed session has a window of its own on the
// way: a receiver that does not read blocks only its own sender, and neither other sessions nor the
// exchange.
//
// A node has one connection with the exchange, which carries all its sessions. If the connection is
// lost, both sides resume it. If the exchange is restarted, nodes connect again, and so do their
// sessions, which are resumed if both nodes have [asterisque.WithResume].
//
// # Policy
//
// [Config].Policy controls access between nodes by their proven identities: the Grant.Subject of
// the exchange's [asterisque.Access], or the certificate of the node. Without a rule a node can
// neither reach another node nor learn of its existence. The exchange can read the relayed data.
package exchange
