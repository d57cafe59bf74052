// One running call: sections 6 and 8 of the protocol. A Pipe belongs to the side that it is on; session.mjs gives it what arrives.

import { blockCost } from './costs.mjs';
import { Abort, Code } from './errors.mjs';
import { capped } from './integers.mjs';
import { Incoming, Outgoing } from './window.mjs';

/**
 * Pipe is a call, and the two directions of its stream if it is one. result is a promise of the
 * bytes of the result; it fails with an Abort. Whoever opens a stream reads it to its end, or stops
 * it, or aborts the call: the room for what may come is kept until then.
 */
export class Pipe {
  /**
   * The Open is {pipe, priority, meta}, sent by this side if mine is set. depth is how many calls
   * it is within.
   */
  constructor(session, { pipe, priority, meta }, mine, depth) {
    Object.assign(this, { session, id: pipe, priority, mine, depth });
    const { own, peer } = session, window = meta.window ?? 0;
    this.stream = meta.window !== undefined;
    this.out = new Outgoing(this, peer.early ? (mine ? peer.early : window) : Infinity);
    this.in = new Incoming(this, own.early ? (mine ? window : own.early) : Infinity, mine && own.early ? window : 0);
    this.inbox = [];
    this.skipped = 0; // Blocks that expired here
    this.endedHere = this.stoppedHere = !this.stream && mine; // a unary call is as if its opener had said so
    this.endedThere = this.stoppedThere = !this.stream && !mine;
    if (!this.stream) this.in.end();
    this.over = null; // {result} or {abort} of the end of the call
    this.atEnd = []; // functions to call then, at once
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
    const cost = blockCost(payload, this.session.peer);
    for (;;) {
      if (this.over) throw this.over.abort ?? new Abort(Code.Canceled, 'the call is over');
      if (this.endedHere) throw new Error('sending has ended');
      if (this.stoppedThere) throw new Abort(Code.Stopped, 'the receiver wants no more', { remote: true });
      if (!Number.isSafeInteger(this.out.sent + cost)) throw new Abort(Code.TooLarge, 'no number says what was sent with this Block');
      const room = this.session.wire.room();
      if (room) await room;
      else if (this.out.depart(cost)) break;
      else await this.wait();
    }
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
        this.skipped = capped(this.skipped, b.skipped + 1);
        continue;
      }
      if (this.over?.abort) throw this.over.abort;
      if (this.endedThere || this.over) return null;
      this.in.waits++;
      this.session.room.allow();
      await this.wait();
      this.in.waits--;
    }
  }

  skippedBefore(b) {
    const n = capped(b.skipped, this.skipped);
    this.skipped = 0;
    return n;
  }

  take(b) {
    const cost = blockCost(b.payload, this.session.own);
    this.session.count(-cost);
    this.in.take(cost);
    this.freeIfDone();
  }

  /**
   * freeIfDone gives the room of this direction back as soon as nothing is left in it and nothing
   * more comes.
   */
  freeIfDone() {
    if (!this.endedThere && !this.stoppedHere && !this.over) return;
    this.in.end();
    if (this.inbox.length === 0) this.in.free();
  }

  async* [Symbol.asyncIterator]() {
    for (let b = await this.recv(); b; b = await this.recv()) yield b.payload;
  }

  /** stop says that this side wants no more Blocks. The call goes on. */
  stop() {
    if (this.stoppedHere) return;
    this.stoppedHere = true;
    this.discard();
    if (!this.over) this.session.send({ type: 'stop', pipe: this.id });
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
      this.freeIfDone();
      this.skipped = capped(this.skipped, meta.skipped ?? 0);
      this.changed();
      return '';
    }
    if (!this.stream) return ''; // of the callee: it is as if this side had stopped it
    if (!this.mine && this.takesNone) {
      this.abort(new Abort(Code.BadParams, 'the function takes no Blocks'));
      return '';
    }
    if (this.stoppedHere) return '';
    const cost = blockCost(payload, this.session.own);
    if (!this.in.arrive(cost)) {
      this.abort(new Abort(Code.WindowViolation, `${this.in.received} received, ${this.in.limit} granted`));
      return '';
    }
    this.session.count(cost);
    this.inbox.push({ payload: Buffer.from(payload), skipped: meta.skipped ?? 0, expires: performance.now() + (meta.ttl ?? Infinity) });
    this.changed();
    return '';
  }

  /** admit tells whether a Block that begins to come in parts is granted. If it is not, the call is over. */
  admit(cost) {
    if (!this.stream || this.stoppedHere || this.in.fits(cost)) return true;
    this.abort(new Abort(Code.WindowViolation, `${this.in.received} received, ${this.in.limit} granted, and ${cost} begin`));
    return false;
  }

  credit(limit) {
    this.out.credit(limit);
    this.changed();
  }

  allow(total) {
    this.out.allow(total);
    this.changed();
  }

  stopped() {
    this.stoppedThere = true;
    this.changed();
  }

  discard() {
    this.inbox.forEach((b) => this.session.count(-blockCost(b.payload, this.session.own)));
    this.inbox = [];
    this.freeIfDone();
  }

  /** finish ends the call on this side, without a word to the peer. */
  finish(over) {
    if (this.over) return;
    this.over = over;
    if (over.abort || !this.mine) this.discard();
    this.freeIfDone();
    this.atEnd.forEach((f) => f());
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
