// Package agent joins a program to an exchange (package exchange), to which it only dials out: it
// is reached there by a name, reaches others by theirs, and needs neither an address of its own nor
// NATS.
//
//	a, err := agent.Join(ctx, agent.Config{Exchange: []string{"tls://exchange.example.com:5330"}, Name: "orders", Service: svc, TLS: cfg})
//	defer a.Close()
//
//	stock, err := a.Caller(ctx, "stock") // a pool.Pool
//	left, err := count.Call(ctx, stock, "pencil")
//
// An [Agent] has one connection with the exchange, over which all sessions of its node run. When it
// is lost, both sides resume it; when the exchange is gone, the agent connects to another one of
// its URLs, or to the same when that is back. Sessions with other nodes then end, and their pools
// make new ones; with [asterisque.WithResume] at both nodes they go on instead.
//
// Which nodes an agent sees and reaches is up to the policy of the exchange. The sessions count as
// private (see [wire.IsPrivate]) if the connections of both nodes with the exchange are; the
// exchange itself can read them.
package agent
