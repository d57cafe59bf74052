// The self-test: every valid vector has to be read and written as it says, every invalid one refused.

import { readFileSync } from 'node:fs';
import { blockCost, openCost } from './costs.mjs';
import { decodeFrame, encodeFrame } from './frames.mjs';
import { exact } from './integers.mjs';
import { codecs } from './values.mjs';

const kinds = { open: ['open'], block: ['block'], close: ['close'], part: ['part'] };
const binary = new Set(['params', 'payload', 'result', 'detail', 'bytes', 'trace', 'key', 'node', 'session', 'credential', 'secret']);

/** checkVectors returns how many vectors there are, and a line for each that fails. */
export function checkVectors(file) {
  const { version, valid, invalid, integers = [] } = JSON.parse(readFileSync(file, 'utf8'));
  if (version !== 1) throw new Error(`${file} is of version ${version}, not 1`);
  const failures = [];
  const check = (name, f) => {
    try {
      const what = f();
      if (what) failures.push(`${name}: ${what}`);
    } catch (e) {
      failures.push(`${name}: ${e.message}`);
    }
  };
  for (const v of valid) {
    check(v.name, () => same(toText(decodeFrame(Buffer.from(v.hex, 'hex'))), v.message));
    if (v.cost !== undefined) check(`the cost of ${v.name}`, () => same(costOf(decodeFrame(Buffer.from(v.hex, 'hex'))), v.cost));
    if (!v.oneway) check(v.name, () => same(encodeFrame(toBytes(v.message)).toString('hex'), v.hex));
  }
  for (const v of invalid) check(v.name, () => refused(v));
  for (const v of integers) check(v.name, () => integer(v));
  for (const n of [2 ** 53, 2n ** 53n, -1.5]) check(`a frame with ${n}`, () => unwritable(n));
  return { valid: valid.length, invalid: invalid.length, integers: integers.length, failures };
}

/** integer says what becomes of an integer that should come and go as it is. */
function integer({ codec, hex, value }) {
  const want = exact(BigInt(value)), got = codecs[codec].decode(Buffer.from(hex, 'hex'));
  if (got !== want) return `is the ${typeof got} ${got}, should be the ${typeof want} ${want}`;
  const back = Buffer.from(codecs[codec].encode(got)).toString('hex');
  return back === hex ? '' : `is written as ${back}, should be ${hex}`;
}

/** costOf returns what an Open or a Block costs the receiver that the vectors suppose. */
function costOf(m) {
  const receiver = { overhead: 512, early: 4096 };
  return m.type === 'open' ? openCost(m, receiver) : blockCost(m.payload, receiver);
}

function refused(v) {
  let m;
  try {
    m = decodeFrame(Buffer.from(v.hex, 'hex'));
  } catch {
    return '';
  }
  const want = kinds[v.type];
  return (want ? want.includes(m.type) : !['open', 'block', 'close', 'part'].includes(m.type)) ? `accepted as ${m.type}, although: ${v.reason}` : '';
}

function unwritable(n) {
  try {
    return `is ${encodeFrame({ type: 'ping', n }).toString('hex')}, should not be written`;
  } catch {
    return '';
  }
}

function same(got, want) {
  const [a, b] = [sorted(got), sorted(want)];
  return a === b ? '' : `is ${a}, should be ${b}`;
}

/** sorted is JSON with sorted members, without those that say nothing. */
function sorted(v) {
  return JSON.stringify(v, (key, value) => {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).filter(([k, e]) => k !== 'meta' || Object.keys(e).length > 0).sort());
  });
}

const convert = (f) => function walk(m) {
  return Object.fromEntries(Object.entries(m).map(([k, v]) => [k, k === 'meta' ? walk(v) : binary.has(k) && v !== null ? f(v) : v]));
};
const toText = convert((b) => b.toString('hex'));
const toBytes = convert((s) => Buffer.from(s, 'hex'));
