// What the scenarios of spec/scenarios.json need beside the rest of the contract, and a side that they are played against.

import { Abort } from './errors.mjs';
import { Session } from './session.mjs';
import { dial } from './wire.mjs';

/** announced is little, so that scenarios reach its limits with little. */
export const announced = { max_message: (256 << 10) + 1024, opens: 1 << 20, nested_room: 1 << 20, nested_calls: 1024, room: 8 << 20 };

/** patient is what a side announces besides, and does, which gives nothing up within minutes. */
export const patient = { handshake: 300_000, timeout: 300_000 };

const runs = new Map(); // of tally, by name, in all sessions

/** offerFixture offers the functions of scenarios.md that are there for it alone. */
export function offerFixture(offer, fn, events) {
  const stream = (name, run) => offer(name, run, { stream: true });
  offer('tally', (name) => {
    runs.set(name, (runs.get(name) ?? 0) + 1);
    return `${runs.get(name)}`;
  });
  stream('weigh', (text, call) => weight(call));
  stream('hoard', async (name, call) => {
    events.of(`${name} begun`).happen();
    await events.of(`${name} released`).happened;
    return weight(call);
  });
  offer('errand', (order, { session }) => told(async () => {
    const at = order.indexOf(' ');
    const pipe = await session.call(+order.slice(0, at), session.values.encode(order.slice(at + 1)));
    return session.values.decode(await pipe.result);
  }));
  offer('deliver', (order, { session, signal }) => told(async () => {
    const pipe = await session.call(fn.weigh, session.values.encode(''), { stream: true, signal });
    await sendBlocks(order, session, pipe);
    pipe.end();
    return `${session.values.decode(await pipe.result)}`;
  }));
  stream('pour', async (order, { session, pipe }) => {
    await sendBlocks(order, session, pipe);
    return order;
  });
}

async function weight({ session, pipe }) {
  let n = 0;
  for await (const b of pipe) n += Buffer.byteLength(session.values.decode(b));
  return n;
}

async function sendBlocks(order, session, pipe) {
  const [blocks, size] = order.split(' ').map(Number);
  for (let i = 0; i < blocks; i++) await pipe.send(session.values.encode('x'.repeat(size)));
}

/** told returns the end of a call as text. */
async function told(call) {
  try {
    return await call();
  } catch (e) {
    if (!(e instanceof Abort)) throw e;
    return `${e.refused ? 'refused' : 'failed'} ${e.code}`;
  }
}

/** visitAgain connects again and again: as soon as one session has begun, for the next. */
export async function visitAgain(url, service, options) {
  for (;;) {
    try {
      await new Session(await dial(url), service, options, true).ready;
    } catch (e) {
      if (e.code === 'ECONNREFUSED') return; // nobody listens any more
    }
  }
}
