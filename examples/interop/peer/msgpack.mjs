// The value codec "msgpack": one MessagePack value. Integers, text and depth are as in CBOR.

import { exact } from './integers.mjs';

const DEPTH = 32;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Ext is a value of an extension type that is no timestamp. */
export class Ext {
  constructor(type, data) {
    this.type = type;
    this.data = data;
  }
}

/** encode returns a value as MessagePack. Throws TypeError or RangeError for what has no encoding. */
export function encode(value) {
  const parts = [];
  write(parts, value);
  return Buffer.concat(parts);
}

/** number is a byte, and behind it an integer of so many bytes. */
function number(byte, size, n) {
  const b = Buffer.alloc(1 + size, byte);
  if (size === 8) b.writeBigUInt64BE(BigInt.asUintN(64, BigInt(n)), 1);
  else if (n < 0) b.writeIntBE(n, 1, size);
  else b.writeUIntBE(n, 1, size);
  return b;
}

/** sized is the head of something with a length, in the shortest of the forms that there are. */
function sized(n, fix, most, forms) {
  if (n <= most) return Buffer.of(fix | n);
  if (forms[0] && n < 0x100) return number(forms[0], 1, n);
  return n < 0x10000 ? number(forms[1], 2, n) : number(forms[2], 4, n);
}

function integer(n) {
  if (n < -(1n << 63n) || n >= 1n << 64n) throw new RangeError(`MessagePack has no type for the integer ${n}`);
  if (n >= 0) return n < 0x80 ? Buffer.of(Number(n)) : n < 0x100 ? number(0xcc, 1, Number(n)) : n < 0x10000 ? number(0xcd, 2, Number(n)) : n < 0x100000000 ? number(0xce, 4, Number(n)) : number(0xcf, 8, n);
  return n >= -0x20 ? Buffer.of(Number(n) & 0xff) : n >= -0x80 ? number(0xd0, 1, Number(n)) : n >= -0x8000 ? number(0xd1, 2, Number(n)) : n >= -0x80000000 ? number(0xd2, 4, Number(n)) : number(0xd3, 8, n);
}

function write(parts, v) {
  if (v === null || v === undefined) return parts.push(Buffer.of(0xc0));
  if (typeof v === 'boolean') return parts.push(Buffer.of(v ? 0xc3 : 0xc2));
  if (typeof v === 'bigint' || Number.isSafeInteger(v)) return parts.push(integer(v));
  if (typeof v === 'number') {
    const b = Buffer.alloc(9, 0xcb);
    b.writeDoubleBE(v, 1);
    return parts.push(b);
  }
  if (typeof v === 'string') {
    const b = Buffer.from(v);
    return parts.push(sized(b.length, 0xa0, 31, [0xd9, 0xda, 0xdb]), b);
  }
  if (v instanceof Uint8Array) return parts.push(sized(v.length, 0, -1, [0xc4, 0xc5, 0xc6]), v);
  if (v instanceof Date) return parts.push(...time(v));
  if (v instanceof Ext) return parts.push(sized(v.data.length, 0, -1, [0xc7, 0xc8, 0xc9]), Buffer.of(v.type & 0xff), v.data);
  if (Array.isArray(v)) {
    parts.push(sized(v.length, 0x90, 15, [0, 0xdc, 0xdd]));
    return v.forEach((e) => write(parts, e));
  }
  if (typeof v !== 'object') throw new TypeError(`MessagePack has no encoding for a ${typeof v}`);
  const entries = v instanceof Map ? [...v] : Object.entries(v); // the keys of a Map need not be text
  parts.push(sized(entries.length, 0x80, 15, [0, 0xde, 0xdf]));
  entries.forEach(([k, e]) => { write(parts, k); write(parts, e); });
}

/** time is a timestamp in its longest form, which holds every one. */
function time(at) {
  const ms = at.getTime(), seconds = Math.floor(ms / 1000);
  return [Buffer.of(0xc7, 12, 0xff), number(0, 4, (ms - seconds * 1000) * 1e6).subarray(1), number(0, 8, seconds).subarray(1)];
}

/** decode returns the one value that bytes hold. Map keys become strings, times Dates. */
export function decode(bytes) {
  const r = new Reader(bytes);
  const v = r.value(DEPTH);
  if (r.at < r.bytes.length) throw new RangeError(`${r.bytes.length - r.at} bytes after the value`);
  return v;
}

class Reader {
  constructor(bytes) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  take(n) {
    if (n > this.bytes.length - this.at) throw new RangeError('the value ends in the middle');
    this.at += n;
    return this.bytes.subarray(this.at - n, this.at);
  }

  unsigned(size) { return size === 8 ? exact(this.take(8).readBigUInt64BE()) : this.take(size).readUIntBE(0, size); }
  signed(size) { return size === 8 ? exact(this.take(8).readBigInt64BE()) : this.take(size).readIntBE(0, size); }

  value(levels) {
    const b = this.take(1)[0];
    if (b < 0x80) return b;
    if (b >= 0xe0) return b - 0x100;
    if (b < 0x90) return this.map(b & 15, levels);
    if (b < 0xa0) return this.list(b & 15, levels);
    if (b < 0xc0) return this.text(b & 31);
    switch (b) {
      case 0xc0: return null;
      case 0xc1: throw new RangeError('the byte c1 begins nothing');
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return this.take(this.unsigned(1 << (b - 0xc4)));
      case 0xc7: case 0xc8: case 0xc9: return this.ext(this.unsigned(1 << (b - 0xc7)));
      case 0xca: return this.take(4).readFloatBE();
      case 0xcb: return this.take(8).readDoubleBE();
      case 0xcc: case 0xcd: case 0xce: case 0xcf: return this.unsigned(1 << (b - 0xcc));
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: return this.signed(1 << (b - 0xd0));
      case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return this.ext(1 << (b - 0xd4));
      case 0xd9: case 0xda: case 0xdb: return this.text(this.unsigned(1 << (b - 0xd9)));
      case 0xdc: case 0xdd: return this.list(this.unsigned(2 << (b - 0xdc)), levels);
    }
    return this.map(this.unsigned(2 << (b - 0xde)), levels);
  }

  text(n) { return utf8.decode(this.take(n)); }

  deeper(levels) {
    if (levels === 0) throw new RangeError(`a value is nested deeper than ${DEPTH}`);
    return levels - 1;
  }

  list(n, levels) {
    const list = [], inner = this.deeper(levels);
    for (let i = 0; i < n; i++) list.push(this.value(inner));
    return list;
  }

  map(n, levels) {
    const entries = new Map(), inner = this.deeper(levels);
    for (let i = 0; i < n; i++) {
      const key = this.value(inner);
      if (entries.has(key)) throw new RangeError('a map has a key twice');
      entries.set(key, this.value(inner));
    }
    return Object.fromEntries(entries); // where "__proto__" is a key like any other
  }

  ext(size) {
    const type = this.signed(1), data = this.take(size);
    if (type !== -1) return new Ext(type, data);
    let seconds, nanos = 0;
    if (size === 4) seconds = data.readUInt32BE();
    else if (size === 8) {
      nanos = data.readUInt32BE() >>> 2;
      seconds = Number(data.readBigUInt64BE() & ((1n << 34n) - 1n));
    } else if (size === 12) {
      nanos = data.readUInt32BE();
      seconds = Number(data.readBigInt64BE(4));
    }
    if (seconds === undefined || nanos > 999999999) throw new RangeError('a timestamp is none');
    return new Date(seconds * 1000 + Math.floor(nanos / 1e6));
  }
}
