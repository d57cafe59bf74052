// The matrix of calls that the dialling side makes and checks: the same cases, by the same names, as in the Go program beside it.

import { setMaxListeners } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { described } from './describe.mjs';
import { Abort, Code, nameOf } from './errors.mjs';
import { State, askHealth } from './health.mjs';
import { stringify } from './json.mjs';
import { fn } from './service.mjs';

const PATIENCE = 60000; // milliseconds for one case
const AT_ONCE = 128; // callers of the many calls
const BLOCKS = 2000; // of a stream: more than a window, at 513 each
const LARGE = 300_000, EVERY = 400; // characters of Blocks above their window, and one in how many is such a one
const CALLBACKS = 100, DEPTH = 8; // at once, and how deep

/** Skip says that a case does not apply, and why. */
class Skip extends Error {}

/** runMatrix runs all cases over a session, prints a line for each, and returns how many failed. */
export async function runMatrix(session, calls, print) {
  let failed = 0;
  for (const [name, run] of cases(calls)) {
    const begin = performance.now();
    let outcome = 'ok', why = '';
    const alarm = new Promise((_, reject) => { setTimeout(() => reject(new Error(`not done after ${PATIENCE} ms`)), PATIENCE).unref(); });
    try {
      await Promise.race([run(new Caller(session)), alarm]);
    } catch (e) {
      outcome = e instanceof Skip ? 'skipped' : 'FAILED';
      why = e instanceof Skip ? e.message : String(e instanceof Abort ? e : e.message);
      if (outcome === 'FAILED') failed++;
    }
    print(`${outcome.padEnd(8)}${name.padEnd(32)}${(performance.now() - begin).toFixed(1).padStart(9)} ms  ${why}`.trimEnd());
  }
  return failed;
}

/** Caller calls functions with values. */
class Caller {
  constructor(session) { this.session = session; }

  open(f, params, options) { return this.session.call(f, this.encode(params), options); }
  stream(f, params) { return this.open(f, params, { stream: true }); }
  encode(v) { return this.session.values.encode(v); }
  decode(b) { return this.session.values.decode(b); }
  async call(f, params, options) { return this.decode(await (await this.open(f, params, options)).result); }

  /** numbers skips a case for codecs that carry no numbers. */
  numbers() {
    if (this.session.codec === 'raw') throw new Skip('raw carries bytes, and no numbers or lists');
  }
}

function equal(got, want, what) {
  if (!isDeepStrictEqual(got, want)) throw new Error(`${what}: ${short(got)}, and not ${short(want)}`);
}

const short = (v) => { const s = stringify(v); return s.length > 60 ? `${s.slice(0, 60)}… (${s.length} characters)` : s; };

/** fails waits for the Abort that a call has to end with, and returns it. refused says whether it has to be certain that it did not run. */
async function fails(call, code, refused) {
  let result;
  try {
    result = await call;
  } catch (e) {
    if (!(e instanceof Abort)) throw e;
    equal(nameOf(e.code), nameOf(code), 'the code');
    if (refused !== undefined) equal(e.refused, refused, 'refused');
    return e;
  }
  throw new Error(`succeeded with ${short(result)}, and should be ${nameOf(code)}`);
}

let keys = 0;
const newKey = () => `${process.pid}-${performance.timeOrigin}-${++keys}`;

const order = {
  number: 7, negative: -123456789, text: 'zu groß ∗ 🌟', flag: true, ratio: 1.5, list: ['a', '', 'c'], counts: { apples: 3, pears: 4000000000 }, nothing: null,
  edges: [-(2n ** 63n), -(2n ** 53n) - 1n, -(2n ** 53n), 1 - 2 ** 53, 2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n],
};

const cases = (calls) => [
  ['unary', async (c) => equal(await c.call(fn.echo, 'asterisque ∗ 🌟'), 'asterisque ∗ 🌟', 'the echo')],
  ['values', async (c) => { c.numbers(); equal(await c.call(fn.mirror, order), order, 'the mirrored value'); }],
  ['describe', describeSome],
  ['health', health],
  ['stream from the caller', streamFromCaller],
  ['stream from the callee', streamFromCallee],
  ['stream both ways at once', streamBothWays],
  ['stream stopped by its receiver', streamStopped],
  ['call back 26 deep', async (c) => equal(await c.call(fn.nest, 'abcdefghijklmnopqrstuvwxyz'), 'zyxwvutsrqponmlkjihgfedcba', 'the nested result')],
  ['call backs, more than workers', callBacks],
  ['metadata', metadata],
  ['cancel', cancel],
  ['deadline', deadline],
  ...errors,
  ['1 MiB parameter', async (c) => { const big = 'asterisk'.repeat(1 << 17); equal((await c.call(fn.echo, big)) === big, true, 'the echo is the same'); }],
  [`${calls} calls`, (c) => manyCalls(c, calls)],
  ['ping', ping],
  ['drain', drain],
];

async function describeSome(c) {
  c.numbers();
  const got = await described(c.call.bind(c), fn.describe, [fn.describe, fn.sum, fn.nowhere, fn.echo], c.session.codec);
  equal(got, ['1 echo', '3 sum', '65535 describe'], 'what is described');
}

/** health asks for a part that nobody knows, and sees how it serves no more. */
async function health(c) {
  c.numbers();
  const part = newKey(), query = askHealth(['', part], c.session.codec), unknown = { '': State.serving, [part]: State.unknown };
  equal(await c.call(fn.health, query), unknown, 'the health');
  const watch = await c.stream(fn.changes, query), next = async () => c.decode((await watch.recv()).payload);
  equal(await next(), unknown, 'what comes first');
  equal(await c.call(fn.falter, part), part, 'falter');
  equal(await next(), { [part]: State.notServing }, 'what has changed');
  watch.abort(new Abort(Code.Canceled, 'seen enough'));
  equal((await c.call(fn.health, askHealth([], c.session.codec)))[part], State.notServing, 'the health of all');
}

async function streamFromCaller(c) {
  c.numbers();
  const pipe = await c.stream(fn.sum, '');
  for (let i = 1; i <= BLOCKS; i++) await pipe.send(c.encode(i));
  pipe.end();
  equal(c.decode(await pipe.result), BLOCKS * (BLOCKS + 1) / 2, 'the sum');
}

async function streamFromCallee(c) {
  c.numbers();
  const pipe = await c.stream(fn.count, BLOCKS);
  let next = 1;
  for await (const b of pipe) equal(c.decode(b), next++, 'the next number');
  equal(next - 1, BLOCKS, 'how many came');
  equal(c.decode(await pipe.result), BLOCKS, 'the result');
}

async function streamBothWays(c) {
  const pipe = await c.stream(fn.chat, 'bye');
  const text = (i) => (i % EVERY === 0 ? 'x'.repeat(LARGE + i) : `${i} `.repeat(i % 500 + 1));
  const sending = (async () => {
    for (let i = 0; i < BLOCKS; i++) await pipe.send(c.encode(text(i)));
    pipe.end();
  })();
  let next = 0;
  for await (const b of pipe) equal(c.decode(b), text(next++), `Block ${next}`);
  await sending;
  equal(next, BLOCKS, 'how many came back');
  equal(c.decode(await pipe.result), 'bye', 'the result');
}

async function streamStopped(c) {
  const key = newKey();
  const pipe = await c.stream(fn.sip, key);
  const sendForEver = async () => { for (;;) await pipe.send(c.encode('more')); };
  await fails(sendForEver(), Code.Stopped);
  equal(await c.call(fn.release, key), key, 'release');
  equal(c.decode(await pipe.result), 'stopped', 'the result');
}

async function callBacks(c) {
  const results = await Promise.all(Array.from({ length: CALLBACKS }, () => c.call(fn.nest, 'x'.repeat(DEPTH))));
  equal(new Set(results).size, 1, 'how many different results');
  equal(results[0], 'x'.repeat(DEPTH), 'the result');
}

/** metadata has as much of it as there may be, one byte more, and one entry more. */
async function metadata(c) {
  const small = { tenant: 'schön ∗ 🌟', id: Buffer.of(0, 255), none: '' };
  const full = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`k${i}`.padEnd(3, '_'), 'v'.repeat(125)]));
  const told = async (key, metadata, want) => equal(await c.call(fn.beside, key, { metadata }), want, `what is beside under ${key.trimEnd()}`);
  await told('tenant', small, 'text schön ∗ 🌟');
  await told('id', small, 'bytes 00ff');
  await told('none', small, 'text ');
  await told('absent', small, 'nothing');
  await told('tenant', undefined, 'nothing');
  await told('<tenant', small, 'nothing'); // of a call back
  await told('k31', full, `text ${'v'.repeat(125)}`);
  await told(`k31${' '.repeat(100_000)}`, full, `text ${'v'.repeat(125)}`); // in parts
  await fails(c.call(fn.beside, 'k31', { metadata: { ...full, k31: 'v'.repeat(126) } }), Code.BadParams, true);
  await fails(c.call(fn.beside, 'k31', { metadata: { ...full, k31: '', more: '' } }), Code.BadParams, true);
  await fails(c.call(fn.beside, 'k', { metadata: { k: 1 } }), Code.BadParams, true);
}

async function cancel(c) {
  const key = newKey(), patience = new AbortController();
  const pipe = await c.open(fn.ponder, key, { signal: patience.signal });
  await c.call(fn.begun, key);
  patience.abort();
  await fails(pipe.result, Code.Canceled, false);
  equal(await c.call(fn.ended, key), 'canceled', 'why the function ended');
}

async function deadline(c) {
  for (let ttl = 100; ; ttl *= 2) { // until it is long enough for the function to begin
    const key = newKey();
    const pipe = await c.open(fn.ponder, key, { ttl }).catch((e) => fails(Promise.reject(e), Code.Expired));
    if (pipe instanceof Abort) continue;
    const begun = await c.call(fn.begun, key, { ttl }).catch((e) => fails(Promise.reject(e), Code.Expired));
    await fails(pipe.result, Code.Expired);
    if (begun !== key) continue;
    return equal(await c.call(fn.ended, key), 'expired', 'why the function ended');
  }
}

async function manyCalls(c, calls) {
  let next = 0;
  const caller = async () => {
    while (next < calls) {
      const text = String(next++);
      equal(await c.call(fn.echo, text), text, 'the echo');
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
}

const errors = [
  ['error: no such function', (c) => fails(c.call(fn.nowhere, 'hello'), Code.NoFunction, true)],
  ['error: bad parameters', async (c) => {
    if (c.session.codec === 'raw') throw new Skip('raw takes any bytes');
    const pipe = await c.session.call(fn.echo, Buffer.from('7b7d', 'hex'));
    await fails(pipe.result, Code.BadParams, true);
  }],
  ['error: Blocks nobody takes', async (c) => {
    const pipe = await c.stream(fn.ponder, newKey());
    await pipe.send(c.encode('surprise'));
    await fails(pipe.result, Code.BadParams);
  }],
  ['error: a bad result', (c) => fails(c.call(fn.odd, ''), Code.BadResult, false)],
  ['error: without a code', async (c) => equal((await fails(c.call(fn.broken, 'no such order'), Code.Failed, false)).message, 'no such order', 'the message')],
  ['error: of the application', (c) => failsAsAsked(c, [1000, 2147483647, -1, -2147483648])],
  ['error: each code of the protocol', (c) => failsAsAsked(c, Object.values(Code))],
  ['error: a crash', (c) => fails(c.call(fn.crash, 'oh no'), Code.Panicked, false)],
  ['error: too large a parameter', async (c) => {
    const most = c.session.peer.max_message;
    await fails(c.call(fn.echo, 'x'.repeat(most)), Code.TooLarge, true);
    equal(await c.call(fn.echo, 'small'), 'small', 'the session goes on');
  }],
  ['error: too large a result', (c) => fails(c.call(fn.inflate, String(c.session.own.max_message)), Code.TooLarge, false)],
  ['error: overload', overload],
];

async function failsAsAsked(c, codes) {
  for (const code of codes) {
    const e = await fails(c.call(fn.fail, String(code)), code, false);
    equal(`${e.message}, ${e.detail}`, 'as asked, why', 'message and detail');
  }
}

/** overload makes calls that do not end, until the callee wants no more of them. */
async function overload(c) {
  const patience = new AbortController();
  setMaxListeners(0, patience.signal);
  const ponder = async () => {
    const pipe = await c.open(fn.ponder, newKey(), { signal: patience.signal });
    await pipe.result;
  };
  const e = await Promise.any(Array.from({ length: 400 }, () => fails(ponder(), Code.Overloaded)));
  patience.abort();
  equal(e.refused && e.remote, true, 'it was refused by the peer');
  for (;;) { // what was given up may take a moment to end
    const text = await c.call(fn.echo, 'the session goes on').catch((e) => fails(Promise.reject(e), Code.Overloaded, true));
    if (typeof text === 'string') return equal(text, 'the session goes on', 'the echo');
  }
}

async function ping(c) {
  const before = c.session.pongs;
  c.session.send({ type: 'ping', n: 4711 });
  while (c.session.pongs === before) await c.call(fn.echo, 'a Pong is on its way');
}

async function drain(c) {
  const chat = await c.stream(fn.chat, 'finished');
  const watch = c.session.codec !== 'raw' && await c.stream(fn.changes, askHealth([''], c.session.codec));
  if (watch) equal(c.decode((await watch.recv()).payload), { '': State.serving }, 'its health');
  equal(await c.call(fn.leave, 'soon'), 'soon', 'leave');
  const callOn = async () => { for (;;) await c.call(fn.echo, 'still there?'); };
  await fails(callOn(), Code.Unavailable, true);
  if (watch) {
    equal(c.decode((await watch.recv()).payload), { '': State.notServing }, 'the health of a peer that leaves');
    equal(await watch.recv(), null, 'the end of its health');
    await watch.result;
  }
  await chat.send(c.encode('what runs goes on'));
  chat.end();
  const texts = [];
  for await (const b of chat) texts.push(c.decode(b));
  equal(texts, ['what runs goes on'], 'the stream');
  equal(c.decode(await chat.result), 'finished', 'the result');
  equal(nameOf((await c.session.ended).code), 'SessionClosed', 'the end of the session');
}
