// A peer of protocol 1 in another language, written from spec/ alone: it shares no code with the Go library. Plain Node.js 20, no packages.

import { parseArgs } from 'node:util';
import { Abort } from './peer/errors.mjs';
import { announced, patient, visitAgain } from './peer/fixture.mjs';
import { runMatrix } from './peer/matrix.mjs';
import { newService } from './peer/service.mjs';
import { Session } from './peer/session.mjs';
import { codecs } from './peer/values.mjs';
import { checkVectors } from './peer/vectors.mjs';
import { dial, listen } from './peer/wire.mjs';

const usage = `peer.mjs speaks protocol 1 with the interop program, or with itself.

  node peer.mjs -vectors FILE              checks itself against the test vectors
  node peer.mjs -listen URL [-once]        serves, until it is interrupted or, with -once, the first session has ended
  node peer.mjs -dial URL [-codec NAME] [-calls N]   runs the matrix of calls
  with -fixture, -listen and -dial are the side that the program conformance plays its scenarios against, and with -patient it gives up nothing within minutes

URL is tcp://host:port or ws://host:port/path. NAME is cbor, json or raw.
The exit status is 0 if all is well, 1 if something failed, 2 for wrong arguments.
`;

const options = {
  vectors: { type: 'string' }, listen: { type: 'string' }, once: { type: 'boolean' }, fixture: { type: 'boolean' }, patient: { type: 'boolean' }, dial: { type: 'string' }, codec: { type: 'string' },
  calls: { type: 'string', default: '100000' }, h: { type: 'boolean' }, help: { type: 'boolean' },
};

/** main returns the exit status. */
async function main(args) {
  let flags;
  try {
    flags = parseArgs({ args: args.map((a) => a.replace(/^-(?=[a-z]{2})/, '--')), options }).values; // one dash or two
    const modes = ['vectors', 'listen', 'dial'].filter((m) => flags[m]);
    if (flags.h || flags.help) return print(usage.trimEnd());
    if (modes.length !== 1) throw new Error('one of -vectors, -listen and -dial is needed');
    if (flags.codec && !Object.hasOwn(codecs, flags.codec)) throw new Error(`-codec: ${flags.codec} is none of ${Object.keys(codecs)}`);
    if (!(+flags.calls >= 1)) throw new Error(`-calls: ${flags.calls} is not a positive number`);
  } catch (e) {
    console.error(`peer.mjs: ${e.message}; -h explains`);
    return 2;
  }
  if (flags.vectors) return vectors(flags.vectors);
  const fixture = { ...announced, ...(flags.patient ? patient : {}) };
  if (flags.fixture && flags.dial) return visitAgain(flags.dial, newService(), fixture).then(() => 0);
  return flags.listen ? serve(flags.listen, flags.once, flags.fixture ? fixture : {}) : visit(flags.dial, flags);
}

function print(line) {
  console.log(line);
  return 0;
}

function vectors(file) {
  const { valid, invalid, integers, metadata, scenarios, failures } = checkVectors(file);
  failures.forEach((f) => print(`FAILED  ${f}`));
  print(`${valid} valid and ${invalid} invalid vectors, ${integers} integers, ${metadata} of metadata, ${scenarios} scenarios, ${failures.length} failures`);
  return failures.length > 0 ? 1 : 0;
}

/** serve serves whoever connects. */
async function serve(url, once, options) {
  const sessions = new Set(), service = newService();
  let stop;
  const stopped = new Promise((resolve) => { stop = resolve; });
  const ln = await listen(url, async (wire) => {
    const s = new Session(wire, service, options, false);
    sessions.add(s);
    try {
      await s.ready;
      print(`serves ${s.describe()}`);
    } catch (e) {
      print(`refused: ${e}`);
    }
    const end = await s.ended;
    sessions.delete(s);
    const served = [...s.workers.served].map(([name, n]) => `${name} ${n}`).join(', ');
    print(`ended: ${end}; served ${served || 'nothing'}`);
    if (once) stop();
  });
  print(`listens at ${ln.url}`);
  process.once('SIGINT', stop).once('SIGTERM', stop);
  await stopped;
  ln.close();
  sessions.forEach((s) => s.shutdown());
  return 0;
}

/** visit connects, runs the matrix, and leaves. */
async function visit(url, { codec, calls }) {
  let session;
  try {
    session = await new Session(await dial(url), newService(), codec ? { codecs: [codec] } : {}, true).ready;
  } catch (e) {
    console.error(`peer.mjs: ${url}: ${e instanceof Abort ? e : e.message}`);
    return 1;
  }
  print(`connected to ${session.describe()}`);
  const failed = await runMatrix(session, +calls, print);
  await session.shutdown();
  print(failed > 0 ? `${failed} FAILED` : 'all ok');
  return failed > 0 ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
