// The messages as frames: sections 3 to 5 and 7 of the protocol. A message is an object with the members that vectors.json names.

import { ARRAY, BYTES, FALSE, MAP, Malformed, NULL, Reader, SIMPLE, TRUE, Writer } from './cbor.mjs';

const MOST_MS = 2 ** 31 - 1;
export const MOST_FRAME = 65 << 10, MOST_PART = 64 << 10, LEAST_PART = 1 << 10, MOST_AROUND = { open: 6 << 10, block: 1 << 10, close: 1 << 10 }; // bytes of a frame, of what a part holds, and of a frame in parts besides its content
const LEAST_CODE = -(2 ** 31), MOST_CODE = 2 ** 31 - 1;

/** decodeFrame returns the message that a frame is. Throws Malformed, and keeps parts of the frame. */
export function decodeFrame(frame) {
  const r = new Reader(frame);
  const n = r.expect(ARRAY, 'the message');
  const kind = r.unsigned('message type', 0, 4);
  const m = [control, open, block, close, part][kind](r, n);
  if (r.left() > 0) throw new Malformed(`${r.left()} bytes after the frame`);
  return m;
}

/**
 * headOf returns what the first bytes of an Open, a Block or a Close tell that crosses in parts:
 * type, pipe and content, which is the length of its params, payload or result, and size, how many
 * bytes go before that.
 */
export function headOf(bytes) {
  const r = new Reader(bytes);
  const n = r.expect(ARRAY, 'the message');
  const type = [, 'open', 'block', 'close'][r.unsigned('message type', 1, 3)];
  const head = { type, pipe: r.unsigned('pipe id') };
  if (type === 'open') {
    elements('an Open', n, 5, 6);
    r.unsigned('function', 0, 65535);
    head.priority = r.integer('priority', -128, 127);
  } else if (type === 'block') {
    elements('a Block', n, 3, 4);
  } else {
    elements('a Close', n, 4, 6);
    if (r.head().value !== TRUE) return head;
  }
  const { major, value } = r.head();
  if (major !== BYTES) throw new Malformed('the content of a message in parts is no byte string');
  head.content = value;
  head.size = r.at;
  return head;
}

function elements(what, n, least, most = least) {
  if (n < least || n > most) throw new Malformed(`${what} with ${n} elements`);
}

/**
 * fields reads a map with ascending keys. known has a name and a function for each key that means
 * something. It returns how many bytes are in the strings that are values of the map themselves.
 */
function fields(r, what, most, known, into) {
  const n = r.expect(MAP, what);
  if (n > most) throw new Malformed(`${what} with ${n} entries`);
  let strings = 0;
  for (let i = 0, last = -1; i < n; i++) {
    const key = r.unsigned('key');
    if (key <= last) throw new Malformed(`key ${key} after key ${last}`);
    last = key;
    if (!Object.hasOwn(known, key)) {
      strings += r.ignore();
      continue;
    }
    const [name, read] = known[key];
    const value = read(r);
    if (Buffer.isBuffer(value)) strings += value.length;
    if (value !== 0 && value.length !== 0 || zeroes.has(name)) into[name] = value; // others say nothing
  }
  return strings;
}

const zeroes = new Set(['within', 'window']); // in the meta of an Open, 0 says something

const ttl = ['ttl', (r) => r.unsigned('TTL', 1, MOST_MS)];
const openMeta = {
  1: ttl,
  4: ['trace', (r) => r.byteString('trace context', 1, 512)],
  5: ['key', (r) => r.byteString('idempotency key', 1, 64)],
  6: ['within', (r) => r.unsigned('enclosing pipe id')],
  7: ['window', (r) => r.unsigned('window')],
  8: ['metadata', (r) => r.byteString('metadata', 1)],
  9: ['initial', (r) => r.unsigned('initial credit')],
};
const blockMeta = { 1: ttl, 2: ['loss', (r) => r.unsigned('loss rate', 0, 127)], 3: ['skipped', (r) => r.unsigned('skipped count')] };

function open(r, n) {
  elements('an Open', n, 5, 6);
  const m = {
    type: 'open', pipe: r.unsigned('pipe id'), function: r.unsigned('function', 0, 65535),
    priority: r.integer('priority', -128, 127), params: r.byteString('params'), meta: {},
  };
  const strings = n === 6 ? fields(r, 'meta', 16, openMeta, m.meta) : 0;
  if (m.meta.window === undefined) delete m.meta.initial; // without Blocks it means nothing
  return Object.defineProperty(m, 'strings', { value: strings }); // what they cost; no part of the message
}

function block(r, n) {
  elements('a Block', n, 3, 4);
  const m = { type: 'block', pipe: r.unsigned('pipe id'), payload: r.isNull() ? null : r.byteString('payload'), meta: {} };
  if (n === 4) fields(r, 'meta', 16, blockMeta, m.meta);
  return m;
}

function close(r, n) {
  elements('a Close', n, 4, 6);
  const m = { type: 'close', pipe: r.unsigned('pipe id') };
  const { major, value, float } = r.head();
  const outcome = major === SIMPLE && !float && { [TRUE]: 'result', [FALSE]: 'failed', [NULL]: 'refused' }[value];
  if (!outcome) throw new Malformed('the outcome is neither true, false nor null');
  m.outcome = outcome;
  if (outcome === 'result') {
    elements('a Close with a result', n, 4);
    m.result = r.byteString('result');
    return m;
  }
  elements('a Close without a result', n, 5, 6);
  m.code = r.integer('code', LEAST_CODE, MOST_CODE);
  m.message = r.text('message');
  if (n === 6) m.detail = r.byteString('detail');
  return m;
}

function part(r, n) {
  elements('a Part', n, 3, 4);
  const m = { type: 'part', pipe: r.unsigned('pipe id'), bytes: n === 3 && r.isNull() ? null : r.byteString('part', 1, MOST_PART) };
  if (n === 4) m.whole = r.unsigned('whole', m.bytes.length);
  if (m.whole > m.bytes?.length && m.bytes.length < LEAST_PART) throw new Malformed(`a first part of ${m.bytes.length} bytes`);
  return m;
}

const pipeOrNull = (r) => (r.isNull() ? null : r.unsigned('pipe id'));
const controls = {
  1: [4, (r) => sync({ type: 'sync', version: r.unsigned('version') }, r)],
  2: [3, (r, n) => ({ type: 'ping', n: r.unsigned('number'), ...(n === 4 && { holds: r.unsigned('bytes of the path', 1) }) }), 4],
  3: [3, (r) => ({ type: 'pong', n: r.unsigned('number') })],
  4: [4, (r, n) => {
    const m = { type: 'credit', pipe: pipeOrNull(r) };
    if (m.pipe !== null) elements('a Credit of a pipe', n, 4);
    m.limit = r.unsigned('limit');
    const extra = n === 5 ? r.unsigned('extra credit') : 0;
    return extra ? { ...m, extra } : m;
  }, 5],
  5: [3, (r) => ({ type: 'ack', count: r.unsigned('count') })],
  6: [3, (r) => ({ type: 'drain', last: pipeOrNull(r) })],
  7: [4, (r) => ({ type: 'session_close', code: r.integer('code', LEAST_CODE, MOST_CODE), message: r.text('message') })],
  8: [3, (r) => ({ type: 'stop', pipe: r.unsigned('pipe id') })],
  9: [4, (r) => ({ type: 'skip', pipe: r.unsigned('pipe id'), sent: r.unsigned('skipped cost') })],
};

function control(r, n) {
  if (n < 2) throw new Malformed(`a Control with ${n} elements`);
  const code = r.unsigned('control code');
  if (Object.hasOwn(controls, code)) {
    const [count, read, most] = controls[code];
    elements(`Control ${code}`, n, count, most);
    return read(r, n);
  }
  for (let i = 2; i < n; i++) r.ignore();
  return { type: 'unknown', code };
}

const milliseconds = (what) => (r) => r.unsigned(what, 0, MOST_MS);
const sixteen = (what) => (r) => {
  const b = r.byteString(what);
  if (b.length !== 0 && b.length !== 16) throw new Malformed(`${what} of ${b.length} bytes`);
  return b;
};
const syncFields = {
  1: ['node', (r) => r.byteString('node id', 0, 64)],
  2: ['session', sixteen('session id')],
  3: ['features', (r) => r.unsigned('features')],
  4: ['max_message', (r) => r.unsigned('max message')],
  5: ['early', (r) => r.unsigned('early credit')],
  6: ['opens', (r) => r.unsigned('room for Opens')],
  7: ['ping', milliseconds('ping interval')],
  8: ['timeout', milliseconds('timeout')],
  9: ['codecs', (r) => {
    const n = r.expect(ARRAY, 'codecs');
    if (n < 1 || n > 16) throw new Malformed(`${n} codecs`);
    return Array.from({ length: n }, () => r.text('codec name', 1, 32));
  }],
  10: ['credential', (r) => r.byteString('credential', 0, 4096)],
  11: ['secret', sixteen('secret')],
  12: ['received', (r) => r.unsigned('received count')],
  13: ['overhead', (r) => r.unsigned('overhead', 512)],
  14: ['nested_room', (r) => r.unsigned('nested room')],
  15: ['nested_calls', (r) => r.unsigned('nested calls')],
  16: ['extra', (r) => r.unsigned('extra credit')],
};

function sync(m, r) {
  fields(r, 'Sync', 64, syncFields, m);
  return m;
}

/** encodeFrame returns the frame of a message. Members that are absent count as empty, zero or not there. */
export function encodeFrame(m) {
  const w = new Writer();
  encoders[m.type](w, m);
  return w.bytes();
}

const begin = (w, elements, ...numbers) => numbers.reduce((w, n) => w.integer(n), w.head(ARRAY, elements));
const orNull = (w, n) => (n === null ? w.simple(NULL) : w.integer(n));

const encoders = {
  open: (w, m) => writeFields(begin(w, 5, 1, m.pipe, m.function, m.priority).byteString(m.params), m.meta, { 1: 'ttl', 4: 'trace', 5: 'key', 6: 'within', 7: 'window', 8: 'metadata', 9: 'initial' }),
  block: (w, m) => {
    begin(w, 3, 2, m.pipe);
    writeFields(m.payload === null ? w.simple(NULL) : w.byteString(m.payload), m.meta, { 1: 'ttl', 2: 'loss', 3: 'skipped' });
  },
  close: (w, m) => {
    if (m.outcome === 'result') return begin(w, 4, 3, m.pipe).simple(TRUE).byteString(m.result);
    begin(w, m.detail ? 6 : 5, 3, m.pipe).simple(m.outcome === 'failed' ? FALSE : NULL).integer(m.code).text(cut(m.message));
    if (m.detail) w.byteString(m.detail);
  },
  part: (w, m) => {
    if (m.bytes === null) return begin(w, 3, 4, m.pipe).simple(NULL);
    begin(w, m.whole ? 4 : 3, 4, m.pipe).byteString(m.bytes);
    if (m.whole) w.integer(m.whole);
  },
  sync: (w, m) => {
    begin(w, 4, 0, 1, m.version);
    const present = Object.entries(syncFields).filter(([, [name]]) => m[name] && m[name].length !== 0);
    w.head(MAP, present.length);
    present.forEach(([key, [name]]) => writeField(w.integer(+key), m[name]));
  },
  ping: (w, m) => (m.holds ? begin(w, 4, 0, 2, m.n, m.holds) : begin(w, 3, 0, 2, m.n)),
  pong: (w, m) => begin(w, 3, 0, 3, m.n),
  credit: (w, m) => {
    orNull(begin(w, m.extra ? 5 : 4, 0, 4), m.pipe).integer(m.limit);
    if (m.extra) w.integer(m.extra);
  },
  ack: (w, m) => begin(w, 3, 0, 5, m.count),
  drain: (w, m) => orNull(begin(w, 3, 0, 6), m.last),
  session_close: (w, m) => begin(w, 4, 0, 7, m.code).text(cut(m.message)),
  stop: (w, m) => begin(w, 3, 0, 8, m.pipe),
  skip: (w, m) => begin(w, 4, 0, 9, m.pipe, m.sent),
  unknown: (w, m) => begin(w, 2, 0, m.code),
};

/** writeFields adds meta as one more element, if it says anything. */
function writeFields(w, meta, names) {
  const present = Object.entries(names).filter(([, name]) => meta?.[name] || (zeroes.has(name) && meta?.[name] === 0));
  if (present.length === 0) return;
  w.parts[0] = Buffer.of(w.parts[0][0] + 1); // the array has one element more
  w.head(MAP, present.length);
  present.forEach(([key, name]) => writeField(w.integer(+key), meta[name]));
}

function writeField(w, value) {
  if (Array.isArray(value)) return value.reduce((w, s) => w.text(s), w.head(ARRAY, value.length));
  return typeof value === 'number' ? w.integer(value) : w.byteString(value);
}

/** cut shortens a message to 1024 bytes or less, between characters. */
function cut(message, most = 1024) {
  const b = Buffer.from(message);
  if (b.length <= most) return message;
  let end = Math.max(0, most);
  while ((b[end] & 0xc0) === 0x80) end--;
  return b.toString('utf8', 0, end);
}

/** fitted returns a Close with a code as one that a peer takes: without its detail, and with a shorter message. */
export function fitted(close, most) {
  const over = () => encodeFrame(close).length - most;
  if (close.outcome === 'result' || over() <= 0) return close;
  close = { ...close, detail: undefined, message: cut(close.message) };
  return over() <= 0 ? close : { ...close, message: cut(close.message, Buffer.byteLength(close.message) - over()) };
}
