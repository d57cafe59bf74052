// What travels with a call beside its parameters: section 4 of the protocol. It is a Map from text to text or bytes.

import { BYTES, MAP, Reader, TEXT, Writer } from './cbor.mjs';
import { Abort, Code } from './errors.mjs';

const MOST_ENTRIES = 32, MOST_BYTES = 4096; // of all keys and values

/** FEATURE says in a Sync that its sender knows metadata. */
export const FEATURE = 2;

/** Count counts entries, and refuses the first that is one too many or too much. */
class Count {
  entries = 0;
  bytes = 0;

  add(key, length) {
    const size = Buffer.byteLength(key);
    this.bytes += size + length;
    if (size === 0) bad(key, 'the key is empty');
    if (++this.entries > MOST_ENTRIES) bad(key, `one more than the ${MOST_ENTRIES} entries that there may be`);
    if (this.bytes > MOST_BYTES) bad(key, `with it keys and values have ${this.bytes} bytes, and ${MOST_BYTES} are the most`);
  }
}

function bad(key, what) {
  throw new Abort(Code.BadParams, `metadata: entry ${typeof key === 'number' ? key : JSON.stringify(key.slice(0, 64))}: ${what}`, { refused: true });
}

/** encodeMetadata returns a Map, or an object, as it crosses, or undefined if it has no entries. Throws an Abort that names the entry. */
export function encodeMetadata(metadata = {}) {
  const count = new Count();
  const entries = [...(metadata instanceof Map ? metadata : Object.entries(metadata))]
    .map(([key, value]) => [new Writer().text(key).bytes(), key, value])
    .sort(([a], [b]) => Buffer.compare(a, b));
  if (entries.length === 0) return undefined;
  const w = new Writer().head(MAP, entries.length);
  for (const [, key, value] of entries) {
    const text = typeof value === 'string';
    if (!text && !(value instanceof Uint8Array)) bad(key, `a value of type ${typeof value}, not text or bytes`);
    if (!key.isWellFormed() || (text && !value.isWellFormed())) bad(key, 'half a surrogate pair is no text');
    count.add(key, text ? Buffer.byteLength(value) : value.length);
    w.text(key);
    if (text) w.text(value);
    else w.byteString(value);
  }
  return w.bytes();
}

/** decodeMetadata returns the Map that has crossed; undefined is an empty one. Throws an Abort that names the entry. */
export function decodeMetadata(bytes) {
  const metadata = new Map(), count = new Count();
  if (!bytes) return metadata;
  const r = new Reader(Buffer.from(bytes)); // what is read is part of it, and not of the frame
  let at = 0, before = Buffer.alloc(0);
  try {
    const n = r.expect(MAP, 'it');
    for (at = 1; at <= n; at++) {
      const begin = r.at, key = r.text('the key'), encoded = r.bytes.subarray(begin, r.at);
      at = [at, key];
      if (Buffer.compare(before, encoded) >= 0) bad(key, Buffer.compare(before, encoded) ? 'its place is before the entry that it follows' : 'the key comes twice');
      const value = stringOf(r);
      count.add(key, Buffer.byteLength(value));
      metadata.set(key, value);
      [at, before] = [at[0], encoded];
    }
    if (r.left() > 0) throw new Error(`${r.left()} bytes after the map`);
  } catch (e) {
    if (e instanceof Abort) throw e;
    bad(Array.isArray(at) ? at[1] : at, e.message);
  }
  return metadata;
}

function stringOf(r) {
  const major = r.bytes[r.at] >> 5;
  if (major === TEXT) return r.text('the value');
  if (major !== BYTES && r.left() > 0) throw new Error('the value is neither text nor bytes');
  return r.byteString('the value');
}
