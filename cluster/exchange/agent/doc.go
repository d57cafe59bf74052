// Package agent connects a program to an exchange (package exchange) by outbound connections only.
// The program is reached there by a name, reaches other programs by theirs, and needs neither an
// address of its own nor NATS.
//
//	a, err := agent.Join(ctx, agent.Config{Exchange: []string{"tls://exchange.example.com:5330"}, Name: "orders", Service: svc, TLS: cfg})
//	defer a.Close()
//
//	stock, err := a.Caller(ctx, "stock") // a pool.Pool
//	left, err := count.Call(ctx, stock, "pencil")
//
// An [Agent] has one connection with the exchange, which carries all sessions of its node. When the
// connection is lost, both sides resume it. When the exchange is gone, the agent connects to
// another one of its URLs, or to the same when that is back. Sessions with other nodes then end,
// and their pools make new ones. If both nodes have [asterisque.WithResume], the sessions are
// resumed instead.
//
// The policy of the exchange decides which nodes an agent sees and reaches. The sessions count as
// private (see [wire.IsPrivate]) if the connections of both nodes with the exchange are private;
// the exchange itself can read them.
package agent
