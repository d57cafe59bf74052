// Value codecs: what parameters, Blocks and results hold, by the name that the handshake agrees on.

import { decode, encode } from './cbor.mjs';
import { Abort, Code } from './errors.mjs';
import { parse, stringify } from './json.mjs';
import * as msgpack from './msgpack.mjs';

const cbor = { encode, decode };

const json = {
  encode: (v) => Buffer.from(stringify(v)),
  decode: (bytes) => parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)),
};

const raw = {
  encode(v) {
    if (typeof v === 'string') return Buffer.from(v);
    if (v instanceof Uint8Array) return Buffer.from(v);
    throw new TypeError(`raw has no encoding for ${v === null ? 'null' : `a ${typeof v}`}`);
  },
  decode: (bytes) => Buffer.from(bytes).toString(),
};

export const codecs = { cbor, json, raw, msgpack };

/** checked wraps a codec: what it cannot encode is BadResult, what it cannot decode BadParams. */
export function checked(codec) {
  const as = (code, f) => (v) => {
    try {
      return f(v);
    } catch (e) {
      throw new Abort(code, e.message);
    }
  };
  return { encode: as(Code.BadResult, codec.encode), decode: as(Code.BadParams, codec.decode) };
}
