// What messages cost their receiver: section 8 of the protocol. A receiver has the overhead and the
// early credit of its Sync.

/** openCost returns the cost of an Open, be it one that has arrived or one that is to be sent. */
export function openCost(m, receiver) {
  const { trace, key, metadata, window } = m.meta;
  const strings = m.strings ?? [trace, key, metadata].reduce((sum, b) => sum + (b?.length ?? 0), 0);
  return m.params.length + strings + receiver.overhead + (window === undefined ? 0 : receiver.early);
}

/** blockCost returns the cost of a Block with this payload. */
export const blockCost = (payload, receiver) => (payload === null ? 0 : payload.length + receiver.overhead);
