// Package transport has helpers for authors of a custom wire.Wire, wire.Listener or wire.Transport.
// Applications that only use transports need none of it.
//
//   - URLs: [ParseURL], [HostPort] and [Bare] parse them, with errors that name the fault and wrap
//     [ErrURL]; [ShowURL] and [HideURL] keep secrets out of logs and errors.
//   - Options: [TLSConfig] and [ServerTLS] fill in the defaults of wire.Options; [ListenTCP]
//     listens with its options, and [NoReusePort] is for transports without support for ReusePort.
//   - Addresses: [Addr] and [Addrs] name ends outside of IP networks, and [IsHere] reports which
//     are on this machine.
//   - Speed: [BoundUnsent] bounds the unsent bytes that the kernel buffers, and a [Buffer] is
//     memory that a Wire can transfer to the session.
//   - Doors: a node admits connections before it spends resources on them. A listener that is
//     [Guarded] asks its [Door], and its wires are [Admitted].
package transport
