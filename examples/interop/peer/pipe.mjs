// One running call: sections 6 and 8 of the protocol. A Pipe belongs to the side that it is on; session.mjs gives it what arrives.

import { blockCost } from './costs.mjs';
import { Abort, Code } from './errors.mjs';
import { capped } from './integers.mjs';
import { Cut } from './parts.mjs';
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
    this.sending = null; // a promise while a Block is being sent
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

  /**
   * send sends a Block, behind those before. It waits for the window, and while much waits for the
   * wire. meta may have ttl and loss.
   */
  async send(payload, meta = {}) {
    this.session.checkSize(payload.length);
    const before = this.sending;
    let done;
    const sending = this.sending = new Promise((resolve) => { done = resolve; });
    try {
      if (before) await before;
      await this.sendAll(new Cut({ type: 'block', pipe: this.id, payload, meta }), blockCost(payload, this.session.peer));
    } catch (e) {
      if (!this.over) this.out.giveUp();
      throw e;
    } finally {
      if (this.sending === sending) this.sending = null;
      done();
    }
  }

  async sendAll(block, cost) {
    while (!block.done) {
      if (this.over) throw this.over.abort ?? new Abort(Code.Canceled, 'the call is over');
      if (this.endedHere) throw new Error('sending has ended');
      if (this.stoppedThere) throw new Abort(Code.Stopped, 'the receiver wants no more', { remote: true });
      if (!block.begun && !Number.isSafeInteger(this.out.sent + cost)) throw new Abort(Code.TooLarge, 'no number says what was sent with this Block');
      const room = this.session.wire.room(), next = !room && this.out.next(block);
      if (next) this.session.send(next);
      else await (room ?? this.wait());
    }
  }

  /** end says that no Block follows. */
  end() {
    if (this.endedHere || this.over) return;
    this.endedHere = true;
    this.out.giveUp();
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
      this.session.room.grant();
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
    this.in.take(b);
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
    this.session.parts.ignore(this.id);
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

  /** arrive takes a Block of the peer, which has come in parts if these are set. It returns what breaks the protocol, if anything does. */
  arrive({ payload, meta }, parts) {
    if (this.endedThere) return `a Block of pipe ${this.id} after the end of its direction`;
    if (payload === null) {
      this.endedThere = true;
      this.freeIfDone();
      this.skipped = capped(this.skipped, meta.skipped ?? 0);
      this.changed();
      return '';
    }
    if (!parts && (!this.wantsBlocks() || !this.granted(blockCost(payload, this.session.own)))) return '';
    const debt = parts ? this.in.complete() : 0;
    this.inbox.push({ payload: Buffer.from(payload), debt, skipped: meta.skipped ?? 0, expires: performance.now() + (meta.ttl ?? Infinity) });
    this.changed();
    return '';
  }

  /** wantsBlocks says whether Blocks of the peer are kept here. A call that has none may be over with one. */
  wantsBlocks() {
    if (this.stream && !this.mine && this.takesNone) this.abort(new Abort(Code.BadParams, 'the function takes no Blocks'));
    return this.stream && !this.stoppedHere && !this.over; // a unary call is as if this side had stopped its Blocks
  }

  granted(cost) {
    if (this.in.arrive(cost)) return true;
    this.abort(new Abort(Code.WindowViolation, `${this.in.received} received, ${this.in.limit} granted, and ${cost} more`));
    return false;
  }

  /** announce begins a Block in parts. It returns whether they are kept. */
  announce(content) {
    if (!this.wantsBlocks()) return false;
    this.in.announce(content);
    return true;
  }

  /** arrivePart counts a part of the unfinished Block. */
  arrivePart(cost) {
    if (this.in.block && this.granted(cost)) this.session.room.grant();
  }

  credit(limit) {
    this.out.credit(limit);
    this.changed();
  }

  stopped() {
    this.stoppedThere = true;
    this.changed();
  }

  discard() {
    this.inbox.forEach((b) => this.in.discard(b));
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
