// One direction of a stream, at its two ends: section 8 of the protocol. All numbers are costs
// since the birth of the pipe.

import { LEAST, base, blockCost } from './costs.mjs';

/** Outgoing is the end that sends. */
export class Outgoing {
  constructor(pipe, limit) {
    Object.assign(this, { pipe, limit, sent: 0 });
    this.end = 0; // the total sent with all of the unfinished Block; 0 if there is none
  }

  /**
   * next returns the Block, or the next part of it, if it may leave now. If not, credit comes by
   * itself.
   */
  next(block) {
    const { peer } = this.pipe.session, { begun, sent } = block;
    const overhead = begun ? 0 : peer.overhead, left = this.limit - this.sent, rest = overhead + block.content - sent;
    if (!begun && rest > left && (rest <= base(peer) || left < overhead + LEAST)) return undefined;
    const m = block.take(left - overhead);
    if (!m) return undefined;
    this.end = block.done ? 0 : this.sent + rest;
    this.sent += overhead + block.sent - sent;
    return m;
  }

  /** giveUp ends the unfinished Block, which counts as a whole one. */
  giveUp() {
    if (!this.end) return;
    this.sent = this.end;
    this.end = 0;
    this.pipe.session.send({ type: 'part', pipe: this.pipe.id, bytes: null });
  }

  credit(limit) { this.limit = Math.max(this.limit, limit); }
}

/** Incoming is the end that receives. */
export class Incoming {
  constructor(pipe, limit, window = 0) {
    Object.assign(this, { pipe, limit, window, received: 0, taken: 0 });
    this.waits = 0; // how many calls of recv wait for a Block
    this.block = null; // {cost, end, debt, at} of the unfinished Block: its total, its room for large Blocks, the time of its last part
    this.ended = false;
    this.freed = () => {}; // to call once, when the window is free
  }

  get room() { return this.pipe.session.room; }

  /** begin grants a window, now that a function takes Blocks. */
  begin() {
    if (this.ended || this.limit === Infinity) return;
    this.window = this.room.grow();
    this.credit();
  }

  /** announce begins a Block in parts. */
  announce(content) {
    const cost = content + this.pipe.session.own.overhead;
    this.block = { cost, end: this.received + cost, debt: 0, at: 0 };
    this.room.unfinished.add(this);
  }

  /** arrive counts a Block or a part of one. It returns whether that was granted. */
  arrive(cost) {
    if (this.received + cost > this.limit) return false;
    this.received += cost;
    this.pipe.session.count(cost);
    if (this.block) this.block.at = performance.now();
    return true;
  }

  /** complete returns the debt of the complete Block, for its receiver. */
  complete() {
    const { debt } = this.block;
    this.block = null;
    this.room.unfinished.delete(this);
    return debt;
  }

  /** drop releases the unfinished Block. */
  drop() {
    if (!this.block) return;
    this.pipe.session.count(this.block.end - this.received - this.block.cost);
    this.room.free(this.complete());
  }

  /** gaveUp: the unfinished Block will not come, and counts as a whole one. */
  gaveUp() {
    if (!this.block) return;
    const { cost, end } = this.block;
    this.drop();
    this.received = end;
    this.taken += cost;
    this.credit();
  }

  take({ payload, debt }) {
    this.discard({ payload, debt });
    this.taken += blockCost(payload, this.pipe.session.own);
    this.credit();
    this.room.grant();
  }

  /** discard gives back what a Block has that has come. */
  discard({ payload, debt }) {
    this.pipe.session.count(-blockCost(payload, this.pipe.session.own));
    this.room.free(debt);
  }

  /**
   * credit tells the peer of a higher limit if half of the window is owed, or less than always gets
   * credit is left.
   */
  credit() {
    const owed = this.taken + this.window - this.limit;
    const little = this.limit - this.taken < base(this.pipe.session.own);
    if (this.ended || this.window === 0 || owed <= 0 || (owed < this.window / 2 && !little)) return;
    this.raise(this.limit + owed);
  }

  raise(limit) {
    this.limit = limit;
    this.pipe.session.send({ type: 'credit', pipe: this.pipe.id, limit });
  }

  /** ready says whether an application waits for the unfinished Block, and it cannot all come. */
  ready() { return this.waits > 0 && this.limit < this.block.end && this.taken === this.block.end - this.block.cost; }

  /** need is the room that the unfinished Block needs besides the window. */
  need() { return Math.max(0, this.block.cost - this.window); }

  /** grant raises the limit to the end of the unfinished Block. */
  grant(debt) {
    Object.assign(this.block, { debt, at: performance.now() });
    this.raise(Math.max(this.block.end, this.taken + this.window));
  }

  /** stalls says whether all of the unfinished Block might have come, and nothing has since then. */
  stalls(since) { return this.block && this.block.end <= this.limit && this.block.at < since; }

  /** skipped takes a Skip. It returns what breaks the protocol, if anything does. */
  skipped({ sent }) {
    if (this.ended || this.limit === Infinity) return '';
    if (sent < this.received || sent > this.limit) return `a Skip of pipe ${this.pipe.id} to ${sent}, of ${this.received} to ${this.limit}`;
    this.taken += sent - this.received;
    this.received = sent;
    return '';
  }

  /** end: nothing more comes, or nothing more is wanted. */
  end() {
    if (this.ended) return;
    this.ended = true;
    this.drop();
  }

  /** free gives the window back, once what has come is taken. */
  free() {
    this.end();
    if (this.window > 0) this.room.shrink(this.window);
    this.window = 0;
    this.freed();
    this.freed = () => {};
  }
}
