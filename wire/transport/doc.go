// Package transport has what authors of transports share: of a wire.Wire, a wire.Listener or a
// wire.Transport of their own. Programs that only use transports need none of it.
//
//   - URLs: [ParseURL], [HostPort] and [Bare] take them apart, with errors that say what is wrong
//     and wrap [ErrURL]; [ShowURL] and [HideURL] keep secrets out of logs and errors.
//   - Options: [TLSConfig] and [ServerTLS] fill in what wire.Options promises; [ListenTCP] listens
//     as they say, and [NoReusePort] is for what cannot.
//   - Addresses: [Addr] and [Addrs] name ends that are in no network, and [IsHere] tells which are
//     on this machine.
//   - Speed: [BoundUnsent] keeps the kernel from hoarding what is sent, and a [Buffer] is memory
//     that a Wire can leave to the session.
//   - Doors: a node admits connections before anything is spent on them. A listener that is
//     [Guarded] asks its [Door], and its wires are [Admitted].
package transport
