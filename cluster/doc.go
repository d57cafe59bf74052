// Package cluster gives nodes names instead of addresses: a program joins as "orders", and others
// call "orders", wherever its nodes are at the time, and however many there are.
//
//	c, err := cluster.Join(ctx, cluster.Config{Name: "orders", Service: svc, Listen: []string{"tls://10.0.0.7:0"}, TLS: cfg})
//	defer c.Close()
//
//	stock, err := c.Caller(ctx, "stock") // a pool.Pool
//	left, err := count.Call(ctx, stock, "pencil")
//
// It is built on NATS, as a server within the program (package broker), which is the default, or as
// servers of yours. NATS carries names, presence, and what must survive; sessions go directly from
// node to node where one of them can be dialled, and through NATS where none can
// ([natswire]): so an agent behind a translation of addresses is called by name as any other node.
//
// # Names
//
// All nodes of a name are equal: [Cluster.Caller] is a [pool.Pool] over them, with its balancing,
// keys, broadcast, health and draining. [Cluster.At] is one node, by its id, and [Cluster.Holder]
// whoever holds a key such as "device/4711" at the time, which it has claimed ([Cluster.Claim]).
//
// # Presence
//
// [Cluster.Members] lists the nodes of a name, and [Cluster.Watch] tells how they change: joined,
// changed, draining, left, lost. A node has an entry in a bucket of JetStream, which changes only
// when the node does, and gives a sign of life each 5 seconds in another one, where it lasts for
// 15. One of the nodes, whichever, removes those that give none. Who has a session with a node sees
// its end at once: if then neither an address of the node answers nor anybody in NATS, the node is
// lost for all. One that was taken for lost, and is not, is back within 5 seconds.
//
// A name is watched by the nodes that use it, and by no other one: what a node costs depends on how
// many nodes have the names that it uses, and not on how many there are.
//
// # Durable calls
//
// With [Config].Durable the nodes of a name remember durable calls ([asterisque.WithDurable])
// together, so that a call goes on at another node when the one that ran it is lost, and is run
// once nevertheless. [The page for operators] says what exactly is promised.
//
// # Calls that wait
//
// With [Post] a call waits for a name of which nobody is there, until one of its nodes takes it
// ([Config].Queue) or its deadline passes. Who has posted it asks for the outcome by a [Receipt],
// also after a restart.
//
// # Sessions that go on at any node
//
// With [Config].ResumeAnywhere a peer that has lost its wire comes back to any node of the name, as
// behind one address, and goes on with its session, which that node relays to the one that has it.
//
// # Who is who
//
// What others read of a node is what that says of itself, and whoever may write into the buckets
// may write for it. [The page for operators] has permissions of NATS that leave each name to its
// own nodes; they guard against mistakes, and not against attacks. With [Config].TLS a node proves
// by its certificate, to whoever calls it, that it is of the name; then NATS can keep nodes from
// each other, and not let one pass for another.
//
// # When NATS is away
//
// Direct sessions go on, and the last addresses that were known serve; sessions through NATS fail,
// and go on when it is back, where both nodes have [asterisque.WithResume]. Names that were not in
// use cannot be looked up. Nodes join again by themselves, also when JetStream has lost all.
//
// # Programs without asterisque
//
// The tools of NATS show nodes and their functions ("nats micro ls"), and an [Endpoint] lets every
// client of NATS call a function, with JSON.
//
// # Operation
//
// [The page for operators] says what NATS has to allow, how much of it is needed, what to watch,
// and what happens when something is away.
//
// [The page for operators]: https://github.com/asterisque-go/asterisque/blob/main/docs/cluster.md
package cluster
