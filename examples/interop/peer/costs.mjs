// What messages cost their receiver: section 8 of the protocol. A receiver has the overhead and the
// early credit of its Sync.

/** openCost returns the cost of an Open, be it one that has arrived or one that is to be sent. */
export function openCost(m, receiver) {
  const { trace, key, metadata, window } = m.meta;
  const strings = m.strings ?? [trace, key, metadata].reduce((sum, b) => sum + (b?.length ?? 0), 0);
  return m.params.length + strings + receiver.overhead + (window === undefined ? 0 : receiver.early);
}

/** LEAST is how many bytes of its payload a Block begins with that does not fit as a whole. */
export const LEAST = 1 << 10;

/** base is what always gets credit once all before it is taken: a Block of this cost, or the beginning of a larger one. */
export const base = (receiver) => Math.max(receiver.early, receiver.overhead + LEAST);

/** blockCost returns the cost of a Block with this payload. */
export const blockCost = (payload, receiver) => (payload === null ? 0 : payload.length + receiver.overhead);
