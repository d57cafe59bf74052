// One running call: sections 6 and 8 of the protocol. A Pipe belongs to the side that it is on; session.mjs gives it what arrives.

import { Abort, Code } from './errors.mjs';

/** OVERHEAD is what a message costs beside its payload, in bytes. */
export const OVERHEAD = 64;

/** Pipe is a call and its two streams. result is a promise of the bytes of the result; it fails with an Abort. */
export class Pipe {
  constructor(session, id, mine, fn) {
    Object.assign(this, { session, id, mine, function: fn });
    this.sent = 0;
    this.limit = session.peer.window || Infinity; // granted by the peer
    this.received = 0;
    this.taken = 0;
    this.granted = session.own.window || Infinity; // granted to the peer
    this.inbox = [];
    this.skipped = 0; // Blocks that expired here
    this.endedHere = this.endedThere = this.stoppedHere = this.stoppedThere = false;
    this.over = null; // {result} or {abort} of the end of the call
    this.ending = new AbortController(); // for functions: the call was given up
    this.waiters = new Set(); // functions to call when anything changes
    this.result = new Promise((resolve, reject) => { this.settle = { resolve, reject }; });
    this.result.catch(() => {}); // nobody has to wait for it
  }

  changed() {
    const waiting = this.waiters;
    this.waiters = new Set();
    waiting.forEach((wake) => wake());
  }

  wait() { return new Promise((wake) => this.waiters.add(wake)); }

  // Sending.

  /** send sends a Block. It waits for the window, and while much waits for the wire. meta may have ttl and loss. */
  async send(payload, meta = {}) {
    this.session.checkSize(payload.length);
    for (;;) {
      if (this.over) throw this.over.abort ?? new Abort(Code.Canceled, 'the call is over');
      if (this.endedHere) throw new Error('sending has ended');
      if (this.stoppedThere) throw new Abort(Code.Stopped, 'the receiver wants no more', { remote: true });
      const room = this.session.wire.room();
      if (room) await room;
      else if (this.sent >= this.limit) await this.wait();
      else break;
    }
    this.sent += payload.length + OVERHEAD;
    this.session.send({ type: 'block', pipe: this.id, payload, meta });
  }

  /** end says that no Block follows. */
  end() {
    if (this.endedHere || this.over) return;
    this.endedHere = true;
    this.session.send({ type: 'block', pipe: this.id, payload: null });
  }

  // Receiving.

  /** recv returns the next {payload, skipped}, or null after the last one. */
  async recv() {
    for (;;) {
      const b = this.inbox.shift();
      if (b) {
        this.take(b);
        if (b.expires > performance.now()) return { payload: b.payload, skipped: this.skippedBefore(b) };
        this.skipped += b.skipped + 1;
        continue;
      }
      if (this.over?.abort) throw this.over.abort;
      if (this.endedThere || this.over) return null;
      await this.wait();
    }
  }

  skippedBefore(b) {
    const n = b.skipped + this.skipped;
    this.skipped = 0;
    return n;
  }

  /** take counts a Block as taken, and tells the peer each quarter of the window. */
  take(b) {
    const cost = b.payload.length + OVERHEAD, window = this.session.own.window;
    this.taken += cost;
    this.session.count(-cost);
    if (!window || this.stoppedHere || this.endedThere || this.over || this.taken + window - this.granted < window / 4) return;
    this.granted = this.taken + window;
    this.session.send({ type: 'credit', pipe: this.id, limit: this.granted });
  }

  async* [Symbol.asyncIterator]() {
    for (let b = await this.recv(); b; b = await this.recv()) yield b.payload;
  }

  /** stop says that this side wants no more Blocks. The call goes on. */
  stop() {
    if (this.stoppedHere || this.over) return;
    this.stoppedHere = true;
    this.discard();
    this.session.send({ type: 'stop', pipe: this.id });
  }

  /** abort ends the call from this side. */
  abort(abort) {
    if (this.over) return;
    const outcome = abort.refused && !this.mine ? 'refused' : 'failed';
    this.session.send({ type: 'close', pipe: this.id, outcome, code: abort.code, message: abort.message, detail: abort.detail });
    this.finish({ abort });
  }

  // What the session calls.

  /** arrive takes a Block of the peer. It returns what breaks the protocol, if anything does. */
  arrive({ payload, meta }) {
    if (this.endedThere) return `a Block of pipe ${this.id} after the end of its direction`;
    if (payload === null) {
      this.endedThere = true;
      this.skipped += meta.skipped ?? 0;
      this.changed();
      return '';
    }
    if (!this.mine && this.takesNone) {
      this.abort(new Abort(Code.BadParams, 'the function takes no Blocks'));
      return '';
    }
    if (this.received >= this.granted) {
      this.abort(new Abort(Code.WindowViolation, `${this.received} bytes received, ${this.granted} granted`));
      return '';
    }
    const cost = payload.length + OVERHEAD;
    this.received += cost;
    if (this.stoppedHere) return '';
    this.session.count(cost);
    this.inbox.push({ payload: Buffer.from(payload), skipped: meta.skipped ?? 0, expires: performance.now() + (meta.ttl ?? Infinity) });
    this.changed();
    return '';
  }

  credit(limit) {
    if (limit <= this.limit) return;
    this.limit = limit;
    this.changed();
  }

  stopped() {
    this.stoppedThere = true;
    this.changed();
  }

  discard() {
    this.inbox.forEach((b) => this.session.count(-(b.payload.length + OVERHEAD)));
    this.inbox = [];
  }

  /** finish ends the call on this side, without a word to the peer. */
  finish(over) {
    if (this.over) return;
    this.over = over;
    if (over.abort || !this.mine) this.discard();
    this.session.forget(this);
    if (over.abort) {
      this.settle.reject(over.abort);
      this.ending.abort(over.abort);
    } else {
      this.settle.resolve(over.result);
    }
    this.changed();
  }
}
