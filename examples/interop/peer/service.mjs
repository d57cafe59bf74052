// What both sides offer: the same functions as in contract.go, with the same numbers.

import { describe } from './describe.mjs';
import { Abort, Code } from './errors.mjs';
import { Health, State } from './health.mjs';
import { offerFixture } from './fixture.mjs';
import { exact } from './integers.mjs';

export const fn = Object.freeze({
  echo: 1, mirror: 2, sum: 3, count: 4, chat: 5, nest: 6, ponder: 7, begun: 8, ended: 9, fail: 10, broken: 11, crash: 12, inflate: 13, odd: 14, leave: 15, sip: 16,
  release: 17, beside: 18, falter: 19, tally: 20, weigh: 21, hoard: 22, errand: 23, deliver: 24, pour: 25, nowhere: 99, health: 65281, changes: 65282, describe: 65535,
});

/** Events are things that happen once, and that others wait for. */
class Events {
  all = new Map();

  of(name) {
    if (!this.all.has(name)) {
      let happen;
      const happened = new Promise((resolve) => { happen = resolve; });
      this.all.set(name, { happen, happened });
    }
    return this.all.get(name);
  }
}

const isText = (v) => {
  if (typeof v !== 'string') throw new Error(`the parameters are ${v === null ? 'null' : `a ${typeof v}`} and not text`);
};

/** newService returns a map from numbers to functions. run gets the parameters and {session, pipe, metadata, signal}; one with a stream may use the Blocks of its pipe. */
export function newService() {
  const events = new Events();
  const service = new Map();
  const offer = (name, run, { stream = false, check = isText } = {}) => service.set(fn[name], { name, run, stream, check });
  const any = () => {};

  offer('echo', (text) => text);
  offer('mirror', (order) => order, { check: any });
  offerStreams(offer, events);
  offerFixture(offer, fn, events);
  offer('nest', async (text, { session, pipe, signal }) => {
    if (text === '') return '';
    const inner = await session.call(fn.nest, session.values.encode(text.slice(1)), { within: pipe, signal });
    return session.values.decode(await inner.result) + text[0];
  });
  offer('beside', async (key, { session, pipe, metadata }) => {
    if (key.startsWith('<')) return session.values.decode(await (await session.call(fn.beside, session.values.encode(key.slice(1)), { within: pipe })).result);
    const v = metadata.get(key.trimEnd());
    return v === undefined ? 'nothing' : typeof v === 'string' ? `text ${v}` : `bytes ${v.toString('hex')}`;
  });
  offer('ponder', async (key, { signal }) => {
    events.of(`${key} begun`).happen();
    await new Promise((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', resolve);
    });
    events.of(`${key} ended`).happen(signal.reason.code === Code.Expired ? 'expired' : 'canceled');
    throw signal.reason;
  });
  offer('begun', async (key) => { await events.of(`${key} begun`).happened; return key; });
  offer('ended', (key) => events.of(`${key} ended`).happened);
  offer('release', (key) => { events.of(`${key} released`).happen(); return key; });
  offer('fail', (code) => {
    if (+code !== (+code | 0)) throw new Abort(Code.BadParams, `${code} is no code`);
    throw new Abort(+code, 'as asked', { detail: Buffer.from('why') });
  });
  offer('broken', (text) => { throw new Error(text); });
  offer('crash', (text) => { throw new TypeError(text); });
  offer('inflate', (n) => 'x'.repeat(+n));
  offer('odd', () => () => 'a function is no value');
  offer('leave', (text, { session }) => { setImmediate(() => session.shutdown()); return text; });
  const health = new Health();
  offer('falter', (part) => { health.set(part, State.notServing); return part; });
  offer('health', (params, call) => health.check(params, call), { check: any });
  offer('changes', (params, call) => health.watch(params, call), { stream: true, check: any });
  offer('describe', describe(service), { check: any });
  return service;
}

function offerStreams(offer, events) {
  const stream = (name, run, check) => offer(name, run, { stream: true, check });
  stream('sum', async (text, { session, pipe }) => {
    let total = 0n;
    for await (const b of pipe) total += BigInt(session.values.decode(b));
    return exact(total);
  });
  stream('count', async (n, { session, pipe }) => {
    for (let i = 1; i <= n; i++) await pipe.send(session.values.encode(i));
    return n;
  }, (n) => { if (!Number.isSafeInteger(n)) throw new Error('the parameters are not an integer to count to'); });
  stream('chat', async (text, { pipe }) => {
    for await (const b of pipe) await pipe.send(b);
    return text;
  });
  stream('sip', async (key, { pipe }) => {
    for (let i = 0; i < 3; i++) await pipe.recv();
    pipe.stop();
    await events.of(`${key} released`).happened;
    return 'stopped';
  });
}
