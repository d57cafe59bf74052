// The part of CBOR (RFC 8949) that protocol 1 uses: definite lengths, shortest heads. Reader is for frames, encode and decode are the value codec "cbor".

import { exact, LONGEST } from './integers.mjs';

/** Malformed is thrown for bytes that do not keep to the encoding. */
export class Malformed extends Error {}

export const UNSIGNED = 0, NEGATIVE = 1, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5, TAG = 6, SIMPLE = 7;
export const FALSE = 20, TRUE = 21, NULL = 22;

const names = ['an unsigned integer', 'a negative integer', 'a byte string', 'a text string', 'an array', 'a map', 'a tag', 'a simple value or floating-point number'];
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reader reads one item after the other. What it returns of byte strings is part of the bytes it was given. */
export class Reader {
  constructor(bytes) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  left() { return this.bytes.length - this.at; }

  /** need returns where the next n bytes are, and goes behind them. */
  need(n) {
    if (n > this.left()) throw new Malformed('the frame ends in the middle');
    const at = this.at;
    this.at += n;
    return at;
  }

  /**
   * head reads the first bytes of an item. Above 2^53-1 value is Infinity, and wide the BigInt that
   * it is. float is how many bytes of floating point the item has, if it is that.
   */
  head() {
    const first = this.bytes[this.need(1)];
    const major = first >> 5, info = first & 31;
    if (info < 24) return { major, value: info };
    if (info === 31) throw new Malformed(major === SIMPLE ? 'a break' : 'an indefinite length');
    if (info > 27) throw new Malformed('a reserved length');
    const { value, wide, least } = this.argument(info);
    if (major === SIMPLE) {
      if (info === 24 && value < 32) throw new Malformed(`simple value ${value} in two bytes`);
      return { major, value, float: info > 24 ? 1 << (info - 24) : 0 };
    }
    if (value < least) throw new Malformed('a head that is not in the shortest form');
    return { major, value, wide };
  }

  argument(info) {
    const b = this.bytes;
    switch (info) {
      case 24: return { value: b[this.need(1)], least: 24 };
      case 25: return { value: b.readUInt16BE(this.need(2)), least: 0x100 };
      case 26: return { value: b.readUInt32BE(this.need(4)), least: 0x10000 };
    }
    const n = exact(b.readBigUInt64BE(this.need(8)));
    return typeof n === 'bigint' ? { value: Infinity, wide: n, least: 0 } : { value: n, least: 0x100000000 };
  }

  /** expect reads the head of an item that has to be of a major type, and returns its value. */
  expect(major, what) {
    const h = this.head();
    if (h.major !== major) throw new Malformed(`${what} is ${names[h.major]}`);
    return h.value;
  }

  unsigned(what, least = 0, most = Number.MAX_SAFE_INTEGER) {
    const n = this.expect(UNSIGNED, what);
    if (n < least || n > most) throw new Malformed(`${what} is not in ${least} to ${most}`);
    return n;
  }

  integer(what, least, most) {
    const h = this.head();
    if (h.major > NEGATIVE) throw new Malformed(`${what} is ${names[h.major]}`);
    const n = h.major === UNSIGNED ? h.value : -1 - h.value;
    if (n < least || n > most) throw new Malformed(`${what} is not in ${least} to ${most}`);
    return n;
  }

  byteString(what, least = 0, most = Infinity) {
    const n = this.expect(BYTES, what);
    if (n < least || n > most) throw new Malformed(`${what} of ${n} bytes`);
    const at = this.need(n);
    return this.bytes.subarray(at, at + n);
  }

  text(what, least = 0, most = Infinity) {
    const n = this.expect(TEXT, what);
    if (n < least || n > most) throw new Malformed(`${what} of ${n} bytes`);
    const at = this.need(n);
    try {
      return utf8.decode(this.bytes.subarray(at, at + n));
    } catch {
      throw new Malformed(`${what} is not valid UTF-8`);
    }
  }

  /** isNull goes behind a null, if that comes next. */
  isNull() {
    if (this.bytes[this.at] !== 0xf6) return false;
    this.at++;
    return true;
  }

  /**
   * ignore goes behind an item of no meaning here, in which at most so many levels are nested. It
   * returns how many bytes are in it if it is a string, and 0 for everything else.
   */
  ignore(levels = 4) {
    const h = this.head();
    if (h.major === BYTES || h.major === TEXT) {
      this.need(h.value);
      return h.value;
    }
    if (h.major < ARRAY || h.major === SIMPLE) return 0;
    if (levels === 0) throw new Malformed('an ignored value is nested deeper than 4');
    const items = h.major === TAG ? 1 : h.major === MAP ? 2 * h.value : h.value;
    for (let i = 0; i < items; i++) this.ignore(levels - 1); // each takes a byte at least, so the frame bounds this
    return 0;
  }
}

/** Writer collects what is encoded. */
export class Writer {
  constructor() { this.parts = []; }

  /** head takes a number that is exact, or a BigInt that no number is, of 64 bits. */
  head(major, n) {
    const m = major << 5;
    if (n < 24) this.parts.push(Buffer.of(m | n));
    else if (n < 0x100) this.parts.push(Buffer.of(m | 24, n));
    else if (n < 0x10000) this.parts.push(Buffer.of(m | 25, n >> 8, n & 255));
    else if (n < 0x100000000) this.parts.push(Buffer.of(m | 26, n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255));
    else {
      const b = Buffer.alloc(9, m | 27);
      b.writeBigUInt64BE(BigInt(n), 1);
      this.parts.push(b);
    }
    return this;
  }

  /** integer takes what a frame may have. Throws RangeError for what is none, or was rounded. */
  integer(n) {
    if (!Number.isSafeInteger(n)) throw new RangeError(`a frame has no place for the number ${n}`);
    return n < 0 ? this.head(NEGATIVE, -1 - n) : this.head(UNSIGNED, n);
  }

  byteString(b) { this.head(BYTES, b.length).parts.push(b); return this; }
  text(s) { const b = Buffer.from(s); this.head(TEXT, b.length).parts.push(b); return this; }
  simple(n) { return this.head(SIMPLE, n); }
  bytes() { return Buffer.concat(this.parts); }
}

/** encode returns a value as one CBOR item. Throws TypeError for what has no encoding. */
export function encode(value) {
  const w = new Writer();
  write(w, value);
  return w.bytes();
}

function write(w, v) {
  if (v === null || v === undefined) return w.simple(NULL);
  if (typeof v === 'boolean') return w.simple(v ? TRUE : FALSE);
  if (typeof v === 'string') return w.text(v);
  if (Number.isSafeInteger(v)) return w.integer(v);
  if (typeof v === 'bigint') return writeBig(w, v);
  if (typeof v === 'number') {
    const b = Buffer.alloc(9, 0xfb);
    b.writeDoubleBE(v, 1);
    return w.parts.push(b);
  }
  if (v instanceof Uint8Array) return w.byteString(v);
  if (Array.isArray(v)) {
    w.head(ARRAY, v.length);
    return v.forEach((e) => write(w, e));
  }
  if (typeof v !== 'object') throw new TypeError(`CBOR has no encoding for a ${typeof v}`);
  if (v instanceof Map) { // whose keys need not be text
    w.head(MAP, v.size);
    return v.forEach((e, k) => { write(w, k); write(w, e); });
  }
  const entries = Object.entries(v);
  w.head(MAP, entries.length);
  entries.forEach(([k, e]) => { w.text(k); write(w, e); });
}

/** writeBig writes an integer, with a tag and as bytes if it has more than 64 bits. */
function writeBig(w, n) {
  const positive = n < 0 ? ~n : n;
  if (positive < 1n << 64n) return w.head(n < 0 ? NEGATIVE : UNSIGNED, exact(positive));
  const hex = positive.toString(16);
  w.head(TAG, n < 0 ? 3 : 2).byteString(Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex'));
}

/**
 * decode returns the value of one CBOR item. Integers beyond 2^53-1 on either side of 0 are BigInts,
 * other tags than those of integers are left out, map keys become strings.
 */
export function decode(bytes) {
  const r = new Reader(bytes);
  const v = read(r, 32);
  if (r.left() > 0) throw new Malformed(`${r.left()} bytes after the value`);
  return v;
}

function read(r, levels) {
  if (levels === 0) throw new Malformed('a value is nested deeper than 32');
  const begin = r.at;
  const { major, value, wide, float } = r.head();
  switch (major) {
    case UNSIGNED: return wide ?? value;
    case NEGATIVE: return exact(~BigInt(wide ?? value));
    case BYTES: r.at = begin; return r.byteString('value');
    case TEXT: r.at = begin; return r.text('value');
    case ARRAY: {
      const list = [];
      for (let i = 0; i < value; i++) list.push(read(r, levels - 1));
      return list;
    }
    case MAP: {
      const entries = [];
      for (let i = 0; i < value; i++) entries.push([read(r, levels - 1), read(r, levels - 1)]);
      return Object.fromEntries(entries); // where "__proto__" is a key like any other
    }
    case TAG: return value === 2 || value === 3 ? readBig(r, value === 3) : read(r, levels - 1);
  }
  if (float === 8) return r.bytes.readDoubleBE(r.at - 8);
  if (float === 4) return r.bytes.readFloatBE(r.at - 4);
  if (float === 2) return half(r.bytes.readUInt16BE(r.at - 2));
  return value === TRUE ? true : value === FALSE ? false : null;
}

function readBig(r, negative) {
  const n = BigInt(`0x0${r.byteString('an integer', 0, LONGEST).toString('hex')}`);
  return exact(negative ? ~n : n);
}

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}
