// The conversation of two nodes: sections 7 to 13 of the protocol. What arrives goes to its pipe, what is called to workers.mjs.

import { randomBytes } from 'node:crypto';
import { Abort, Code, nameOf } from './errors.mjs';
import { decodeFrame, encodeFrame } from './frames.mjs';
import { OVERHEAD, Pipe } from './pipe.mjs';
import { checked, codecs } from './values.mjs';
import { Workers } from './workers.mjs';

const VERSION = 1;
const HANDSHAKE = 5000; // milliseconds for all of it
const SOFT = 16 << 20; // bytes that wait for the application, from which on nothing is read
const HEAD = 64; // bytes that a frame has at most beside its payload, here: no trace context is sent

/**
 * defaults are what a session announces: bytes, Opens, milliseconds, names; and how many functions it runs at once, and how many calls may wait for that.
 */
export const defaults = {
  max_message: (4 << 20) + 1024, window: 64 << 10, opens: 256, ping: 15000, timeout: 45000, codecs: ['cbor', 'json', 'raw'],
  workers: 64, waiting: 192,
};

/** Session is one end. open and call may be used from the moment that ready resolves; ended resolves with the Abort that it ended with. */
export class Session {
  constructor(wire, service, options, connecting) {
    this.wire = wire;
    this.service = service;
    this.own = { ...defaults, ...options };
    this.connecting = connecting;
    this.pipes = new Map();
    this.lastOwn = -1; // the highest pipe ids in Opens, here and there
    this.lastTheirs = -1;
    this.opensSent = 0; // windows for Opens count those without an enclosing call
    this.opensReceived = 0;
    this.opensTaken = 0;
    this.opensGranted = this.own.opens || Infinity;
    this.waitingOpens = [];
    this.waiting = 0; // bytes for the application
    this.workers = new Workers(this, this.own.workers);
    this.begun = false;
    this.over = null;
    this.pongs = 0;
    this.lastSent = this.lastReceived = performance.now();
    this.ready = new Promise((resolve, reject) => { this.settle = { resolve, reject }; });
    this.ready.catch(() => {});
    this.ended = new Promise((resolve) => { this.settleEnd = resolve; });
    wire.onframe = (frame) => this.receive(frame);
    wire.onend = (e) => this.finish(new Abort(this.begun ? Code.SessionClosed : Code.Handshake, e ? `the wire failed: ${e.message}` : 'the wire was closed'));
    this.timer = setTimeout(() => this.refuse(new Abort(Code.Handshake, `no handshake within ${HANDSHAKE} ms`)), HANDSHAKE);
    if (connecting) this.sendSync(this.own.codecs);
    wire.start();
  }

  // Sending.

  send(message) {
    if (this.over) return;
    this.lastSent = performance.now();
    this.wire.send(encodeFrame(message));
  }

  sendSync(names, session) {
    const { max_message, window, opens, ping, timeout, node } = this.own;
    this.send({ type: 'sync', version: VERSION, node: Buffer.from(node ?? 'peer.mjs'), session, max_message, window, opens, ping, timeout, codecs: names });
  }

  checkSize(bytes) {
    if (bytes + HEAD > this.peer.max_message) {
      throw new Abort(Code.TooLarge, `${bytes} bytes are more than the peer accepts, which is ${this.peer.max_message} with the head`, { refused: true });
    }
  }

  // Handshake.

  handshake(m) {
    if (m.type === 'session_close') return this.finish(new Abort(m.code, m.message, { remote: true }));
    if (m.type !== 'sync') return this.refuse(new Abort(Code.Handshake, `a ${m.type} before the handshake`));
    const name = this.connecting ? m.codecs?.[0] : m.codecs?.find((c) => this.own.codecs.includes(c));
    const wrong = this.wrong(m, name);
    if (wrong) return this.refuse(new Abort(Code.Handshake, wrong));
    this.peer = { window: 0, opens: 0, ping: 0, timeout: 0, ...m };
    this.codec = name;
    this.values = checked(codecs[name]);
    this.opensLimit = this.peer.opens || Infinity;
    if (!this.connecting) this.sendSync([name], randomBytes(16));
    this.begun = true;
    this.wire.most = this.own.max_message;
    clearTimeout(this.timer);
    this.keepAlive();
    this.settle.resolve(this);
  }

  /** wrong says what in the peer's Sync does not fit, if anything does. */
  wrong(m, name) {
    if (this.connecting ? m.version !== VERSION : m.version < VERSION) return `version ${m.version}; this side speaks ${VERSION}`;
    if (this.connecting && !m.session) return 'an answer without a session id';
    if ((m.max_message ?? 0) < 1024) return `a max message of ${m.max_message ?? 0} is below 1024`;
    if (!m.codecs) return 'no value codec is offered';
    if (this.connecting && (m.codecs.length !== 1 || !this.own.codecs.includes(name))) return `the answer has the codecs ${m.codecs}, and ${this.own.codecs} were offered`;
    if (!name) return `none of the value codecs ${m.codecs}; this side has ${this.own.codecs}`;
    return '';
  }

  refuse(abort) {
    this.send({ type: 'session_close', code: abort.code, message: abort.message });
    this.finish(abort);
  }

  // Receiving: a method for each type of message, which returns what breaks the protocol, if anything does.

  receive(frame) {
    if (this.over) return;
    this.lastReceived = performance.now();
    try {
      if (frame instanceof Error) throw frame;
      const m = decodeFrame(frame);
      if (!this.begun) return this.handshake(m);
      const wrong = this[m.type](m);
      if (wrong) throw new Error(wrong);
    } catch (e) {
      this.refuse(new Abort(this.begun ? Code.Protocol : Code.Handshake, e.message));
    }
  }

  open(m) {
    if (m.pipe % 2 !== (this.connecting ? 1 : 0)) return `an Open with the id ${m.pipe}, which is not for the peer to give out`;
    if (m.pipe <= this.lastTheirs) return `an Open with the id ${m.pipe} after ${this.lastTheirs}`;
    this.lastTheirs = m.pipe;
    const pipe = new Pipe(this, m.pipe, false, m.function);
    this.pipes.set(m.pipe, pipe);
    pipe.counted = m.meta.within === undefined;
    pipe.cost = m.params.length + OVERHEAD;
    this.count(pipe.cost);
    const refuse = (code, message) => {
      this.openTaken(pipe);
      pipe.abort(new Abort(code, message, { refused: true }));
    };
    if (pipe.counted && ++this.opensReceived > this.opensGranted) return void refuse(Code.WindowViolation, `${this.opensReceived} Opens, ${this.opensGranted} granted`);
    if (this.draining) return void refuse(Code.Unavailable, 'this side ends, and runs no more');
    const f = this.service.get(m.function);
    if (!f) return void refuse(Code.NoFunction, `function ${m.function}`);
    pipe.takesNone = !f.stream;
    this.workers.add(pipe, f, { ...m, params: Buffer.from(m.params) });
  }

  /** openTaken counts an Open that waits no more, and tells the peer each quarter of the window. */
  openTaken(pipe) {
    this.count(-pipe.cost);
    pipe.cost = 0;
    if (!pipe.counted) return;
    pipe.counted = false;
    this.opensTaken++;
    const window = this.own.opens;
    if (!window || this.opensTaken + window - this.opensGranted < window / 4) return;
    this.opensGranted = this.opensTaken + window;
    this.send({ type: 'credit', pipe: null, limit: this.opensGranted });
  }

  /** late returns what breaks the protocol in a message for a pipe that is not there. */
  late(id) {
    const last = id % 2 === (this.connecting ? 0 : 1) ? this.lastOwn : this.lastTheirs;
    return id > last ? `pipe ${id} was never opened` : '';
  }

  block(m) {
    const pipe = this.pipes.get(m.pipe);
    return pipe ? pipe.arrive(m) : this.late(m.pipe);
  }

  close(m) {
    const pipe = this.pipes.get(m.pipe);
    if (!pipe) return this.late(m.pipe);
    if (m.outcome === 'result' && pipe.mine) return void pipe.finish({ result: Buffer.from(m.result) });
    const refused = m.outcome === 'refused' && pipe.mine;
    pipe.finish({ abort: new Abort(m.code ?? Code.Canceled, m.message ?? '', { detail: m.detail && Buffer.from(m.detail), refused, remote: true }) });
  }

  credit(m) {
    if (m.pipe === null) {
      if (m.limit > this.opensLimit) this.opensLimit = m.limit;
      while (this.waitingOpens.length > 0 && this.opensSent < this.opensLimit) this.waitingOpens.shift()();
      return '';
    }
    const pipe = this.pipes.get(m.pipe);
    if (!pipe) return this.late(m.pipe);
    if (this.peer.window) pipe.credit(m.limit);
  }

  stop(m) {
    const pipe = this.pipes.get(m.pipe);
    if (!pipe) return this.late(m.pipe);
    pipe.stopped();
  }

  ping(m) { this.send({ type: 'pong', n: m.n }); }
  pong() { this.pongs++; }
  ack() {} // without the feature "resume" it says nothing
  unknown() {}
  sync() { return 'a second Sync'; }

  drain() {
    this.drained = true;
    this.waitingOpens.splice(0).forEach((go) => go());
  }

  session_close(m) { this.finish(new Abort(m.code, m.message, { remote: true })); }

  // Calls.

  /**
   * call calls a function of the peer. Options: ttl in milliseconds, priority, within (the Pipe of a call of the peer, which this one is part of), and signal, an
   * AbortSignal that gives it up. It returns the Pipe, once the Open is sent.
   */
  async call(fn, params, { ttl, priority = 0, within, signal } = {}) {
    const enclosing = within && this.pipes.get(within.id) === within ? within.id : undefined;
    const deadline = performance.now() + (ttl ?? Infinity);
    this.checkSize(params.length);
    while (enclosing === undefined && !this.over && !this.drained && this.opensSent >= this.opensLimit) await this.turn(deadline, signal);
    for (let room = this.wire.room(); room && !this.over; room = this.wire.room()) await room;
    const left = Math.ceil(deadline - performance.now());
    const refusal = this.over ?? (this.drained && new Abort(Code.Unavailable, 'the peer ends, and runs no more', { remote: true }));
    if (refusal) throw Object.assign(new Abort(refusal.code, refusal.message, refusal), { refused: true });
    if (signal?.aborted) throw new Abort(Code.Canceled, 'the caller gave up', { refused: true });
    if (left <= 0) throw new Abort(Code.Expired, 'the time was up before the call was sent', { refused: true });

    this.lastOwn = this.lastOwn < 0 ? (this.connecting ? 0 : 1) : this.lastOwn + 2;
    const pipe = new Pipe(this, this.lastOwn, true, fn);
    this.pipes.set(pipe.id, pipe);
    if (enclosing === undefined) this.opensSent++;
    this.send({ type: 'open', pipe: pipe.id, function: fn, priority, params, meta: { ttl: ttl && left, within: enclosing } });
    const giveUp = () => pipe.abort(new Abort(Code.Canceled, 'the caller gave up'));
    const timer = ttl && setTimeout(() => pipe.abort(new Abort(Code.Expired, `not done after ${ttl} ms`)), left);
    signal?.addEventListener('abort', giveUp);
    pipe.result.catch(() => {}).then(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    });
    return pipe;
  }

  /** turn waits for the window for Opens, in the order of the calls. */
  async turn(deadline, signal) {
    let go, timer;
    const turn = new Promise((resolve) => { go = resolve; });
    this.waitingOpens.push(go);
    if (deadline < Infinity) timer = setTimeout(go, deadline - performance.now());
    signal?.addEventListener('abort', go);
    await turn;
    clearTimeout(timer);
    signal?.removeEventListener('abort', go);
    this.waitingOpens = this.waitingOpens.filter((f) => f !== go);
    if (signal?.aborted || performance.now() >= deadline) {
      this.waitingOpens.shift()?.(); // if it was this one's turn, it is the next one's
      throw new Abort(signal?.aborted ? Code.Canceled : Code.Expired, 'the call was not sent', { refused: true });
    }
  }

  // Life and end.

  count(bytes) {
    this.waiting += bytes;
    if (this.waiting >= SOFT && !this.wire.paused) this.wire.pause();
    else if (this.waiting < SOFT / 2 && this.wire.paused) {
      this.lastReceived = performance.now();
      this.wire.resume();
    }
  }

  /** keepAlive looks from time to time whether to ping, and whether the peer is lost. */
  keepAlive() {
    const interval = Math.min(this.own.ping || Infinity, (this.peer.timeout || Infinity) / 3);
    const patience = this.peer.ping && this.own.timeout ? this.own.timeout : Infinity; // one that never pings may be silent
    if (interval === Infinity && patience === Infinity) return;
    this.ticker = setInterval(() => {
      const now = performance.now();
      if (now - this.lastReceived > patience && !this.wire.paused) this.finish(new Abort(Code.Unavailable, 'the peer is lost'));
      else if (now - this.lastSent >= interval * 0.75) this.send({ type: 'ping', n: Math.floor(now) });
    }, Math.max(10, Math.min(interval, patience) / 4));
  }

  forget(pipe) {
    this.pipes.delete(pipe.id);
    if (this.draining && this.pipes.size === 0) this.endWell();
  }

  /** shutdown lets what runs finish, refuses more, and closes the session. */
  shutdown() {
    if (!this.draining && !this.over) {
      this.draining = true;
      this.send({ type: 'drain', last: this.lastTheirs < 0 ? null : this.lastTheirs });
      if (this.pipes.size === 0) this.endWell();
    }
    return this.ended;
  }

  endWell() { this.refuse(new Abort(Code.SessionClosed, 'closed by this side')); }

  /** finish ends the session on this side. The peer is told by what was sent before, or not at all. */
  finish(abort) {
    if (this.over) return;
    this.over = abort;
    clearTimeout(this.timer);
    clearInterval(this.ticker);
    [...this.pipes.values()].forEach((p) => p.finish({ abort }));
    this.waitingOpens.splice(0).forEach((go) => go());
    this.wire.close();
    this.settle.reject(abort);
    this.settleEnd(abort);
  }

  describe() { return `${Buffer.from(this.peer.node ?? []).toString() || 'somebody'}, ${this.codec}${this.over ? `, ended: ${nameOf(this.over.code)}` : ''}`; }
}
