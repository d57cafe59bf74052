// Integers that a number does not hold exactly are BigInts, in both directions: section 7 of the protocol.

/** exact returns an integer as a number if that holds it exactly, and as a BigInt if not. */
export function exact(n) {
  return n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER ? Number(n) : BigInt(n);
}

/** LONGEST is how many bytes an integer may have, so that none takes much time. */
export const LONGEST = 256;

/** capped adds two counts. What is beyond a number counts as the largest. */
export const capped = (a, b) => Math.min(a + b, Number.MAX_SAFE_INTEGER);
