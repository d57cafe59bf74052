// Package cluster gives nodes names instead of addresses. A program joins as "orders", and other
// programs call "orders", regardless of the number and the addresses of its nodes.
//
//	c, err := cluster.Join(ctx, cluster.Config{Name: "orders", Service: svc, Listen: []string{"tls://10.0.0.7:0"}, TLS: cfg})
//	defer c.Close()
//
//	stock, err := c.Caller(ctx, "stock") // a pool.Pool
//	left, err := count.Call(ctx, stock, "pencil")
//
// It is built on NATS: existing servers, or one within the program (package broker). NATS stores
// names, presence and persistent data. Sessions run directly from node to node if one of them can
// be dialled, and otherwise through NATS ([natswire]). So an agent behind a network address
// translation is called by name like any other node.
//
// # Names
//
// All nodes of a name are equal: [Cluster.Caller] is a [pool.Pool] over them, with its balancing,
// keys, broadcast, health and draining. [Cluster.At] is one node, by its id. [Cluster.Holder] is
// the present holder of a key such as "device/4711", which a node has claimed ([Cluster.Claim]).
//
// # Presence
//
// [Cluster.Members] lists the nodes of a name, and [Cluster.Watch] reports their changes: joined,
// changed, draining, left, lost. A node has an entry in a bucket of JetStream, which changes only
// when the node does. It gives a sign of life every 5 seconds in another bucket, where it lasts for
// 15. One of the nodes removes those without a sign. A peer with a session notices the end of a
// node at once: if then neither an address of the node nor its subject in NATS answers, the node is
// announced as lost. A node that was announced as lost by mistake is back within 5 seconds.
//
// Only nodes that use a name watch it. So the cost of a node depends on the number of nodes of the
// names that it uses, and not on the total number.
//
// # Durable calls
//
// With [Config].Durable the nodes of a name share their records of durable calls
// ([asterisque.WithDurable]). So a call continues at another node when its node is lost, and is run
// only once. [The page for operators] specifies the exact guarantees.
//
// # Posted calls
//
// With [Post] a call to a name without nodes waits until one of its nodes takes it ([Config].Queue)
// or its deadline passes. The poster gets the outcome by a [Receipt], also after a restart.
//
// # Resume at any node
//
// With [Config].ResumeAnywhere a peer that has lost its wire can resume its session at any node of
// the name, as if they were one address. That node relays the session to the node that has it.
//
// # Identity
//
// A node writes its own entries, and any client with write access to the buckets can write entries
// in its name. [The page for operators] has NATS permissions that reserve each name for its own
// nodes. They guard against mistakes, and not against attacks. With [Config].TLS a node proves by
// its certificate, to each caller, that it belongs to the name. Then NATS can block the connections
// between nodes, but cannot impersonate one.
//
// # Outages of NATS
//
// Direct sessions continue, and the last known addresses stay in use. Sessions through NATS fail,
// and resume when NATS is back if both nodes have [asterisque.WithResume]. Names that were not in
// use cannot be looked up. Nodes rejoin automatically, also when JetStream has lost all data.
//
// # Plain NATS clients
//
// The tools of NATS show nodes and their functions ("nats micro ls"). An [Endpoint] makes a
// function available to every NATS client, with JSON.
//
// # Operation
//
// [The page for operators] describes the required NATS permissions and resources, monitoring, and
// the effects of outages.
//
// [The page for operators]: https://github.com/asterisque-go/asterisque/blob/main/docs/cluster.md
package cluster
