// What a side promises, and who waits for what was promised to it: section 8 of the protocol.

import { Abort, Code } from './errors.mjs';

const GROWN = 64 << 10; // what a window is at most, in cost

/**
 * Share is an amount of something, whose takers wait in line: by priority, then arrival. Nobody
 * passes the first but whose priority is higher.
 */
export class Share {
  constructor(left) { Object.assign(this, { left, line: [], open: true }); }

  /**
   * take waits for n of it, and returns a function that gives it back. Throws Expired at the
   * deadline and Canceled when signal is aborted. Once the share is closed nobody waits, and nobody
   * gets anything.
   */
  async take(n, priority, { deadline, signal }) {
    if (!this.open) return () => {};
    const turn = { n, priority };
    const come = new Promise((resolve) => { turn.come = resolve; });
    const at = this.line.findIndex((t) => t.priority < priority);
    this.line.splice(at < 0 ? this.line.length : at, 0, turn);
    this.next();
    const timer = deadline < Infinity && setTimeout(turn.come, deadline - performance.now());
    signal?.addEventListener('abort', turn.come);
    await (signal?.aborted || come);
    clearTimeout(timer);
    signal?.removeEventListener('abort', turn.come);
    if (turn.taken) return () => this.give(n);
    this.line = this.line.filter((t) => t !== turn);
    this.next();
    if (!this.open) return () => {};
    throw new Abort(signal?.aborted ? Code.Canceled : Code.Expired, 'the call was not sent', { refused: true });
  }

  give(n) {
    this.left += n;
    this.next();
  }

  next() {
    while (this.line.length > 0 && this.line[0].n <= this.left) {
      const turn = this.line.shift();
      this.left -= turn.n;
      turn.taken = true;
      turn.come();
    }
  }

  close() {
    this.open = false;
    this.line.splice(0).forEach((t) => t.come());
  }
}

/** Nested are the calls within calls of one side that are not answered. */
export class Nested {
  constructor({ nested_room, nested_calls }) {
    Object.assign(this, { room: nested_room || Infinity, calls: nested_calls || Infinity });
  }

  /** take returns a function that gives the place back, or undefined if there is none. */
  take(cost) {
    if (this.calls < 1 || this.room < cost) return undefined;
    this.calls--;
    this.room -= cost;
    return () => { this.calls++; this.room += cost; };
  }
}

/**
 * Room is what this side has for what the peer sends. The sum of what it promises is at most
 * own.room.
 */
export class Room {
  constructor(session) {
    const { room, max_message, overhead, early, opens, nested_room, workers, callers } = session.own;
    this.session = session;
    this.opens = { granted: opens || Infinity, received: 0, back: 0 };
    this.nested = new Nested(session.own);
    this.windows = new Share(callers); // for streams opened here; each worker has one as well
    this.large = max_message + overhead; // for Blocks that do not fit into their windows
    const apart = opens + nested_room + this.large + (workers + callers) * early;
    this.all = this.spare = Math.max(0, room - apart);
    this.unfinished = new Set(); // the Incomings with an unfinished Block, by arrival
  }

  // Opens.

  /** admit counts an Open of the peer. It returns whether that was granted. */
  admit(cost) {
    if (this.opens.received + cost > this.opens.granted) return false;
    this.opens.received += cost;
    return true;
  }

  /**
   * gone gives back the cost of an Open that waits no more. Credit is held back while the peer has
   * enough of it, or will get it without this.
   */
  gone(cost) {
    const { own, workers } = this.session, o = this.opens;
    o.back += cost;
    const owed = o.back + own.opens - o.granted, left = o.granted - o.received;
    const largest = Math.min(own.opens, own.max_message + own.overhead + own.early);
    const enough = left >= largest || workers.queue.length > 0;
    if (o.granted === Infinity || owed <= 0 || (owed < own.opens / 2 && enough)) return;
    o.granted += owed;
    this.session.send({ type: 'credit', pipe: null, limit: o.granted });
  }

  // Blocks.

  /**
   * grow returns the size for a new window: more than the early credit while more than half of the
   * spare room is free.
   */
  grow() {
    const { early } = this.session.own;
    const more = this.spare > this.all / 2 ? Math.min(Math.max(0, GROWN - early), this.spare) : 0;
    this.spare -= more;
    return early + more;
  }

  /**
   * nestedWindow returns a function that gives a window for a nested stream of this side back, or
   * undefined if there is none.
   */
  nestedWindow() {
    const { early } = this.session.own;
    if (this.spare < early) return undefined;
    this.spare -= early;
    return () => { this.spare += early; };
  }

  shrink(window) { this.spare += window - this.session.own.early; }

  /**
   * grant grants all of their unfinished Blocks to those that wait for them: by priority, then
   * arrival, and each in its turn.
   */
  grant() {
    const ready = [...this.unfinished].filter((i) => i.ready()).sort((a, b) => b.pipe.priority - a.pipe.priority);
    for (const i of ready) {
      const need = i.need();
      if (need > this.large) return;
      this.large -= need;
      i.grant(need);
    }
  }

  /** stalled ends the calls of which a Block stands still since then. */
  stalled(since) {
    for (const i of this.unfinished) {
      if (i.stalls(since)) i.pipe.abort(new Abort(Code.Stalled, 'a Block stood still'));
    }
  }

  /** free gives back the room of a Block that is taken or does not come. */
  free(bytes) {
    if (bytes === 0) return;
    this.large += bytes;
    this.grant();
  }
}
