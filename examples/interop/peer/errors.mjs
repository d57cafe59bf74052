// What a call or a session ends with when there is no result: section 12 of the protocol.

export const Code = Object.freeze({
  Failed: 1, Canceled: 2, Expired: 3, NoFunction: 4, BadParams: 5, BadResult: 6, TooLarge: 7, Overloaded: 8, Unavailable: 9, Panicked: 10, Protocol: 11,
  SessionClosed: 12, HardLimit: 13, Stalled: 14, Dropped: 15, Handshake: 16, WindowViolation: 17, Unauthorized: 18, Stopped: 19,
});

const names = Object.fromEntries(Object.entries(Code).map(([name, code]) => [code, name]));

/** nameOf returns what people call a code. */
export const nameOf = (code) => names[code] ?? `code ${code}`;

/**
 * Abort is the error that crosses the wire. refused says that the call certainly did not run, so that to repeat it is safe; remote, that the peer said so. detail is
 * undefined, or bytes.
 */
export class Abort extends Error {
  constructor(code, message = '', { detail, refused = false, remote = false } = {}) {
    super(message);
    Object.assign(this, { code, detail, refused, remote });
  }

  toString() { return `${nameOf(this.code)}: ${this.message}${this.remote ? ' (said by the peer)' : ''}`; }
}

/** abortOf returns what the peer is told of an error that a function threw: an Abort as it is, an Error with its text, and all else, such as a TypeError, as a crash. */
export function abortOf(e) {
  if (e instanceof Abort && e.code === (e.code | 0)) return e; // other codes cannot be sent
  if (e?.constructor === Error) return new Abort(Code.Failed, e.message);
  return new Abort(Code.Panicked, String(e?.message ?? e));
}
