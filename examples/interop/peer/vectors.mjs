// The self-test: every valid vector has to be read and written as it says, every invalid one refused, and every scenario come to its messages.

import { readFileSync } from 'node:fs';
import { blockCost, openCost } from './costs.mjs';
import { decodeFrame, encodeFrame } from './frames.mjs';
import { decodeMetadata, encodeMetadata } from './metadata.mjs';
import { exact } from './integers.mjs';
import { Parts } from './parts.mjs';
import { codecs } from './values.mjs';

const kinds = { open: ['open'], block: ['block'], close: ['close'], part: ['part'] };
const binary = new Set(['params', 'payload', 'result', 'detail', 'bytes', 'trace', 'key', 'metadata', 'node', 'session', 'credential', 'secret']);

/** checkVectors returns how many vectors there are, and a line for each that fails. */
export function checkVectors(file) {
  const { version, valid, invalid, integers = [], metadata = [], scenarios = [] } = JSON.parse(readFileSync(file, 'utf8'));
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
    check(`${v.name}, written again`, () => same(encodeFrame(decodeFrame(Buffer.from(v.hex, 'hex'))).toString('hex'), v.written ?? v.hex));
    if (v.cost !== undefined) check(`the cost of ${v.name}`, () => same(costOf(decodeFrame(Buffer.from(v.hex, 'hex'))), v.cost));
    if (!v.oneway === (v.written !== undefined) || v.written === v.hex) check(v.name, () => 'oneway and written do not go together');
    check(`${v.name}, written`, () => same(encodeFrame(toBytes(v.message)).toString('hex'), v.written ?? v.hex));
    if (v.cost !== undefined && !v.oneway) check(`the cost of ${v.name} before it is sent`, () => same(costOf(toBytes({ meta: {}, ...v.message })), v.cost));
  }
  for (const v of invalid) check(v.name, () => refused(v));
  for (const v of integers) check(v.name, () => integer(v));
  for (const v of metadata) check(`metadata: ${v.name}`, () => travelling(v));
  for (const v of scenarios) check(v.name, () => scenario(v));
  for (const n of [2 ** 53, 2n ** 53n, -1.5]) check(`a frame with ${n}`, () => unwritable(n));
  return { valid: valid.length, invalid: invalid.length, integers: integers.length, metadata: metadata.length, scenarios: scenarios.length, failures };
}

/** integer says what becomes of an integer that should come and go as it is. */
function integer({ codec, hex, value }) {
  const want = exact(BigInt(value)), got = codecs[codec].decode(Buffer.from(hex, 'hex'));
  if (got !== want) return `is the ${typeof got} ${got}, should be the ${typeof want} ${want}`;
  const back = Buffer.from(codecs[codec].encode(got)).toString('hex');
  return back === hex ? '' : `is written as ${back}, should be ${hex}`;
}

/** travelling says what becomes of metadata. */
function travelling({ hex, entries = [], refused: wanted = false, oneway, reason }) {
  let got;
  try {
    got = decodeMetadata(Buffer.from(hex, 'hex'));
  } catch (e) {
    return wanted ? '' : `is refused: ${e.message}`;
  }
  if (wanted) return `accepted, although: ${reason}`;
  const plain = [...got].map(([key, v]) => (typeof v === 'string' ? { key, text: v } : { key, bytes: v.toString('hex') }));
  const back = encodeMetadata(got)?.toString('hex');
  if (oneway && back === hex) return `is written as ${back}, should not be`;
  return same(plain, entries) || (oneway || back === hex ? '' : `is written as ${back}, should be ${hex}`);
}

/** scenario plays what one side receives, and says what it should have come to. */
function scenario({ frames, messages, refused: wanted = false, max_message: most = 4096, opened: own = [] }) {
  const parts = new Parts(most), opened = new Map(own.map((pipe) => [pipe, true])), got = [];
  const take = (m) => {
    if (parts.has(m.pipe) && m.outcome === undefined) throw new Error('a message is unfinished');
    if (m.type === 'close') parts.drop(m.pipe);
    opened.set(m.pipe, m.type !== 'close');
    got.push(encodeFrame(m).toString('hex'));
  };
  const receive = (m) => {
    if (m.type !== 'part') return take(m);
    if (m.whole) parts.begin(m, () => true);
    else if (!parts.has(m.pipe)) {
      if (opened.get(m.pipe) !== false) throw new Error('nothing is unfinished');
      return null;
    }
    if (m.bytes === null) return parts.drop(m.pipe);
    const complete = parts.add(m);
    return complete && take(complete);
  };
  let refusal = -1;
  frames.forEach((hex, i) => {
    try {
      if (refusal < 0) receive(decodeFrame(Buffer.from(hex, 'hex')));
    } catch {
      refusal = i;
    }
  });
  if (refusal !== (wanted ? frames.length - 1 : -1)) return `frame ${refusal} is refused`;
  return same(got, messages);
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
