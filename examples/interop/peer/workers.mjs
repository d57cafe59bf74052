// Which calls of the peer run, and which wait: by priority, then arrival. Sections 4 and 6 of the protocol.

import { encode } from './cbor.mjs';
import { Abort, abortOf, Code } from './errors.mjs';

const RETRY = 10; // milliseconds after which a call that found too much waiting may be made again

/**
 * Workers runs at most so many functions of a session at once, and beside them those of nested
 * calls, for which others of them wait.
 */
export class Workers {
  constructor(session, most) {
    Object.assign(this, { session, most, running: 0, lent: 0, queue: [], served: new Map() });
  }

  add(pipe, f, m) {
    const job = { pipe, f, m };
    if (m.meta.ttl) {
      const timer = setTimeout(() => pipe.abort(new Abort(Code.Expired, 'the time was up', { refused: !job.begun })), m.meta.ttl);
      pipe.result.catch(() => {}).then(() => clearTimeout(timer));
    }
    if (m.meta.within !== undefined) return this.lend(job);
    if (this.running < this.most) return this.run(job, () => { this.running--; }, this.running++);
    if (this.queue.length >= this.session.own.waiting) return this.refuse(job);
    const at = this.queue.findIndex((j) => j.m.priority < m.priority);
    this.queue.splice(at < 0 ? this.queue.length : at, 0, job);
    pipe.ending.signal.addEventListener('abort', () => this.drop(job)); // given up before it began
  }

  /**
   * lend runs a nested call at once. Of those that were given up some may still run, and they count
   * here.
   */
  lend(job) {
    if (this.lent >= this.session.own.nested_calls) return this.refuse(job);
    this.run(job, () => { this.lent--; }, this.lent++);
  }

  refuse(job) {
    this.session.openTaken(job.pipe);
    job.pipe.abort(new Abort(Code.Overloaded, `${this.queue.length} calls wait`, { detail: encode(RETRY), refused: true }));
  }

  drop(job) {
    if (job.begun) return;
    this.queue = this.queue.filter((j) => j !== job);
    this.session.openTaken(job.pipe);
  }

  async run(job, done) {
    job.begun = true;
    this.session.openTaken(job.pipe);
    if (job.pipe.stream) job.pipe.in.begin();
    this.served.set(job.f.name, (this.served.get(job.f.name) ?? 0) + 1);
    try {
      await this.serve(job);
    } catch (e) {
      const { code, message, detail } = abortOf(e);
      job.pipe.abort(new Abort(code, message, { detail })); // whatever e says of a call of its own, this one has run
    }
    done();
    this.next();
  }

  next() {
    while (this.running < this.most && this.queue.length > 0) this.run(this.queue.shift(), () => { this.running--; }, this.running++);
  }

  async serve({ pipe, f, m }) {
    const { values } = this.session;
    let params;
    try {
      params = values.decode(m.params);
      f.check?.(params);
    } catch (e) {
      return pipe.abort(new Abort(Code.BadParams, e.message, { refused: true }));
    }
    const result = values.encode(await f.run(params, { session: this.session, pipe, metadata: m.metadata, signal: pipe.ending.signal }));
    this.session.checkSize(result.length);
    await this.session.outbound();
    if (pipe.over) return;
    pipe.out.giveUp();
    this.session.send({ type: 'close', pipe: pipe.id, outcome: 'result', result });
    pipe.finish({ result });
  }
}
