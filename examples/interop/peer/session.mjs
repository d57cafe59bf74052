// The conversation of two nodes: sections 7 to 13 of the protocol. What arrives goes to its pipe, what is called to workers.mjs.

import { randomBytes } from 'node:crypto';
import { Abort, Code, nameOf } from './errors.mjs';
import { openCost } from './costs.mjs';
import { MOST_FRAME, decodeFrame, fitted } from './frames.mjs';
import { FEATURE, decodeMetadata, encodeMetadata } from './metadata.mjs';
import { Parts, divided } from './parts.mjs';
import { Pipe } from './pipe.mjs';
import { Nested, Room, Share } from './room.mjs';
import { checked, codecs } from './values.mjs';
import { Workers } from './workers.mjs';

const VERSION = 1;
const DEEPEST = 64; // how many calls a call may be within
const HEAD = 64; // bytes that a frame has at most beside its payload, here: no trace context is sent

/**
 * defaults are what a session announces: bytes, costs, milliseconds, names. And then, what it does
 * not: from how many bytes that wait for the application it stops reading, for which this is the
 * room that all promises have to fit into; how many functions it runs at once, how many calls may
 * wait for that, for how many streams of its own it has windows, and how long a handshake may take.
 */
export const defaults = {
  max_message: (4 << 20) + 1024, early: 4096, opens: 8 << 20, overhead: 512, nested_room: 8 << 20, nested_calls: 2048, ping: 15000, timeout: 45000,
  codecs: ['cbor', 'json', 'raw', 'msgpack'], features: FEATURE, room: 32 << 20, workers: 64, waiting: 192, callers: 64, handshake: 5000,
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
    this.room = new Room(this);
    this.waiting = 0; // bytes for the application
    this.resumed = 0; // when this side last began to read again
    this.workers = new Workers(this, this.own.workers);
    this.begun = false;
    this.over = null;
    this.pongs = 0;
    this.lastSent = this.lastReceived = performance.now();
    this.ready = new Promise((resolve, reject) => { this.settle = { resolve, reject }; });
    this.ready.catch(() => {});
    this.drains = new Promise((resolve) => { this.beginDrain = resolve; }); // resolves when either side begins to end the session
    this.ended = new Promise((resolve) => { this.settleEnd = resolve; });
    wire.onframe = (frame) => this.receive(frame);
    wire.onend = (e) => this.finish(new Abort(this.begun ? Code.SessionClosed : Code.Handshake, e ? `the wire failed: ${e.message}` : 'the wire was closed'));
    this.timer = setTimeout(() => this.refuse(new Abort(Code.Handshake, `no handshake within ${this.own.handshake} ms`)), this.own.handshake);
    if (connecting) this.sendSync(this.own.codecs);
    wire.start();
  }

  // Sending.

  send(message) {
    if (this.over) return;
    this.lastSent = performance.now();
    if (message.detail?.length >= MOST_FRAME / 2 && this.pipes.get(message.pipe)?.mine) message = { ...message, detail: undefined };
    if (message.type === 'close' && this.peer) message = fitted(message, this.peer.max_message);
    divided(message).forEach((frame) => this.wire.send(frame));
  }

  sendSync(names, session) {
    this.send({ ...this.own, type: 'sync', version: VERSION, node: Buffer.from(this.own.node ?? 'peer.mjs'), session, codecs: names });
  }

  /**
   * outbound waits while much waits for the wire, unless this side does not read: then two of its
   * kind would wait for each other.
   */
  async outbound() {
    while (!this.over && !this.wire.paused) {
      const room = this.wire.room();
      if (!room) return;
      await room;
    }
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
    this.peer = { early: 0, overhead: 512, ping: 0, timeout: 0, ...m };
    this.opens = new Share(m.opens || Infinity); // the room there for Opens of this side
    this.nested = new Nested(m);
    this.codec = name;
    this.values = checked(codecs[name]);
    this.opensLimit = m.opens || Infinity;
    if (!this.connecting) this.sendSync([name], randomBytes(16));
    this.begun = true;
    this.wire.most = Math.min(this.own.max_message, MOST_FRAME);
    this.parts = new Parts(this.own.max_message);
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

  /** part takes a part of a message, and the message with the last one. */
  part(m) {
    if (m.whole) this.parts.begin(m, (head) => this.admit(head));
    else if (!this.parts.has(m.pipe)) return this.pipes.has(m.pipe) ? `a part of pipe ${m.pipe}, of which nothing is unfinished` : this.late(m.pipe);
    const block = this.parts.hasBlock(m.pipe) && this.pipes.get(m.pipe);
    if (m.bytes === null) {
      this.parts.drop(m.pipe);
      return void (block && block.in.gaveUp());
    }
    if (block) block.arrivePart(this.parts.contentIn(m) + (m.whole ? this.own.overhead : 0));
    if (!this.parts.has(m.pipe)) return ''; // the call is over, and this is late
    const complete = this.parts.add(m);
    return complete && this[complete.type](complete, true);
  }

  /** admit says whether a message in parts is wanted, by what its first part tells. What an Open costs is looked at when it is complete. */
  admit({ type, pipe, content }) {
    if (type === 'open') {
      const wrong = this.checkId(pipe);
      if (wrong) throw new Error(wrong);
      return true;
    }
    const there = this.pipes.get(pipe);
    if (!there) {
      const wrong = this.late(pipe);
      if (wrong) throw new Error(wrong);
      return null;
    }
    if (type === 'close' && !there.mine) throw new Error(`a Close of pipe ${pipe} in parts, which the peer has opened`);
    if (type === 'block' && there.endedThere) throw new Error(`a Block of pipe ${pipe} after the end of its direction`);
    const wanted = type === 'close' || there.announce(content);
    return this.pipes.has(pipe) ? wanted : null;
  }

  /** checkId returns what is wrong with the id of an Open, and notes that it is used. */
  checkId(pipe) {
    if (pipe % 2 !== (this.connecting ? 1 : 0)) return `an Open with the id ${pipe}, which is not for the peer to give out`;
    if (pipe <= this.lastTheirs) return `an Open with the id ${pipe} after ${this.lastTheirs}`;
    this.lastTheirs = pipe;
    return '';
  }

  open(m, begun) {
    const wrong = begun ? '' : this.checkId(m.pipe);
    if (wrong) return wrong;
    const { within } = m.meta, nested = within !== undefined;
    const enclosing = nested ? this.pipes.get(within) : undefined;
    const pipe = new Pipe(this, m, false, enclosing ? enclosing.depth + 1 : 0);
    this.pipes.set(m.pipe, pipe);
    pipe.held = m.params.length + this.own.overhead;
    this.count(pipe.held);
    const refuse = (code, message) => {
      pipe.abort(new Abort(code, message, { refused: true }));
      this.openTaken(pipe);
    };
    const cost = openCost(m, this.own);
    if (nested) {
      const giveBack = this.room.nested.take(cost);
      if (!giveBack) return void refuse(Code.Overloaded, 'more nested calls than announced');
      pipe.atEnd.push(giveBack);
      if (!enclosing?.mine) return void refuse(Code.Canceled, `the enclosing call ${within} is over`);
      if (pipe.depth > DEEPEST) return void refuse(Code.Overloaded, `within ${pipe.depth} calls`);
    } else {
      if (!this.room.admit(cost)) return void refuse(Code.WindowViolation, 'more Opens than granted');
      pipe.cost = cost;
    }
    if (this.draining) return void refuse(Code.Unavailable, 'this side ends, and runs no more');
    const f = this.service.get(m.function);
    if (!f) return void refuse(Code.NoFunction, `function ${m.function}`);
    let metadata;
    try {
      metadata = decodeMetadata(m.meta.metadata);
    } catch (e) {
      return void refuse(e.code, e.message);
    }
    pipe.takesNone = !f.stream;
    this.workers.add(pipe, f, { ...m, params: Buffer.from(m.params), metadata });
  }

  /** openTaken gives back what an Open has held and cost that waits no more. */
  openTaken(pipe) {
    this.count(-pipe.held);
    pipe.held = 0;
    if (pipe.cost) this.room.gone(pipe.cost);
    pipe.cost = 0;
  }

  /** late returns what breaks the protocol in a message for a pipe that is not there. */
  late(id) {
    const last = id % 2 === (this.connecting ? 0 : 1) ? this.lastOwn : this.lastTheirs;
    return id > last ? `pipe ${id} was never opened` : '';
  }

  block(m, parts) {
    if (this.parts.has(m.pipe)) return `a Block of pipe ${m.pipe}, of which a message is unfinished`;
    const pipe = this.pipes.get(m.pipe);
    return pipe ? pipe.arrive(m, parts) : this.late(m.pipe);
  }

  close(m) {
    if (this.parts.drop(m.pipe) && m.outcome === 'result') return `a result of pipe ${m.pipe}, of which a message is unfinished`;
    const pipe = this.pipes.get(m.pipe);
    if (!pipe) return this.late(m.pipe);
    if (m.outcome === 'result' && pipe.mine) return void pipe.finish({ result: Buffer.from(m.result) });
    const refused = m.outcome === 'refused' && pipe.mine;
    pipe.finish({ abort: new Abort(m.code ?? Code.Canceled, m.message ?? '', { detail: m.detail && Buffer.from(m.detail), refused, remote: true }) });
  }

  credit(m) {
    if (m.pipe === null) {
      const more = Math.max(0, m.limit - this.opensLimit);
      this.opensLimit += more;
      if (more > 0) this.opens.give(more);
      return '';
    }
    const pipe = this.pipes.get(m.pipe);
    if (!pipe) return this.late(m.pipe);
    if (this.peer.early) pipe.credit(m.limit);
  }

  skip(m) {
    if (this.parts.has(m.pipe)) return `a Skip of pipe ${m.pipe}, of which a message is unfinished`;
    const pipe = this.pipes.get(m.pipe);
    return pipe ? pipe.in.skipped(m) : this.late(m.pipe);
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
    this.beginDrain();
    this.nobodyWaits();
  }

  nobodyWaits() {
    this.opens?.close();
    this.room.windows.close();
  }

  session_close(m) { this.finish(new Abort(m.code, m.message, { remote: true })); }

  // Calls.

  /**
   * call calls a function of the peer. Options: ttl in milliseconds, priority, stream (it has
   * Blocks), within (the Pipe of a call of the peer, which this one is part of), metadata, which is
   * left out for a peer that does not know it, and signal, an AbortSignal that gives it up. It
   * returns the Pipe, once the Open is sent.
   */
  async call(fn, params, { ttl, priority = 0, stream = false, within, metadata, signal } = {}) {
    const patience = { deadline: performance.now() + (ttl ?? Infinity), signal };
    const m = { type: 'open', function: fn, priority, params, meta: { within: within?.id, window: stream ? 0 : undefined } };
    const encoded = encodeMetadata(metadata);
    if (this.peer.features & FEATURE) m.meta.metadata = encoded;
    this.checkSize(params.length + (m.meta.metadata?.length ?? 0));
    const held = {}; // functions that give back what the call has taken
    try {
      if (within) this.nest(m, within, held);
      else await this.line(m, patience, held);
      await this.outbound();
      this.checkOpen(patience);
    } catch (e) {
      Object.values(held).forEach((giveBack) => giveBack());
      throw e;
    }
    const left = Math.max(1, Math.ceil(patience.deadline - performance.now()));
    if (stream) m.meta.window = this.own.early ? this.room.grow() : Number.MAX_SAFE_INTEGER;
    if (ttl) m.meta.ttl = left;
    m.pipe = this.lastOwn = this.lastOwn < 0 ? (this.connecting ? 0 : 1) : this.lastOwn + 2;
    const pipe = new Pipe(this, m, true, within ? within.depth + 1 : 0);
    if (held.window) pipe.in.freed = held.window;
    if (within) pipe.atEnd.push(held.nested); // the cost of other Opens comes back as a Credit
    this.pipes.set(pipe.id, pipe);
    this.send(m);
    const giveUp = () => pipe.abort(new Abort(Code.Canceled, 'the caller gave up'));
    const timer = ttl && setTimeout(() => pipe.abort(new Abort(Code.Expired, `not done after ${ttl} ms`)), left);
    signal?.addEventListener('abort', giveUp);
    pipe.atEnd.push(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    });
    return pipe;
  }
  /**
   * line waits for what the Open needs. The window comes first, so that a stream without one keeps
   * nobody else from the room for Opens.
   */
  async line(m, patience, held) {
    const cost = openCost(m, this.peer);
    if (cost > (this.peer.opens || Infinity)) throw new Abort(Code.TooLarge, `the Open costs ${cost}, and the peer has room for ${this.peer.opens}`, { refused: true });
    if (m.meta.window !== undefined) held.window = await this.room.windows.take(1, m.priority, patience);
    held.open = await this.opens.take(cost, m.priority, patience);
  }

  /** nest takes what a nested Open needs, or throws: it never waits. */
  nest(m, within, held) {
    const cost = openCost(m, this.peer), no = (code, message) => { throw new Abort(code, message, { refused: true }); };
    if (this.pipes.get(within.id) !== within) no(Code.Canceled, 'the enclosing call is over');
    if (cost > (this.peer.nested_room || Infinity)) no(Code.TooLarge, `the Open costs ${cost}, and the peer has room for ${this.peer.nested_room}`);
    if (within.depth >= DEEPEST) no(Code.Overloaded, `within more than ${DEEPEST} calls`);
    if (m.meta.window !== undefined) held.window = this.room.nestedWindow() ?? no(Code.Overloaded, 'no window is left here for nested calls');
    held.nested = this.nested.take(cost) ?? no(Code.Overloaded, 'too many nested calls are not answered');
  }

  /** checkOpen throws unless an Open may still be sent. */
  checkOpen({ deadline, signal }) {
    const refusal = this.over ?? (this.drained && new Abort(Code.Unavailable, 'the peer ends, and runs no more', { remote: true }));
    if (refusal) throw Object.assign(new Abort(refusal.code, refusal.message, refusal), { refused: true });
    if (signal?.aborted) throw new Abort(Code.Canceled, 'the caller gave up', { refused: true });
    if (performance.now() >= deadline) throw new Abort(Code.Expired, 'the time was up before the call was sent', { refused: true });
  }

  // Life and end.

  count(bytes) {
    this.waiting += bytes;
    if (this.waiting > this.own.room && !this.wire.paused) this.wire.pause();
    else if (this.waiting < this.own.room / 2 && this.wire.paused) {
      this.lastReceived = this.resumed = performance.now();
      this.wire.resume();
    }
  }

  /** keepAlive looks from time to time whether to ping, and whether the peer is lost. */
  keepAlive() {
    const interval = Math.min(this.own.ping || Infinity, (this.peer.timeout || Infinity) / 3);
    const timeout = this.own.timeout || Infinity, patience = this.peer.ping ? timeout : Infinity; // one that never pings may be silent
    if (interval === Infinity && timeout === Infinity) return;
    this.ticker = setInterval(() => {
      const now = performance.now();
      if (now - this.lastReceived > patience && !this.wire.paused) return this.finish(new Abort(Code.Unavailable, 'the peer is lost'));
      if (now - this.lastSent >= interval * 0.75) this.send({ type: 'ping', n: Math.floor(now) });
      if (!this.wire.paused && now - this.resumed > timeout) this.room.stalled(now - timeout);
    }, Math.max(10, Math.min(interval, timeout) / 4));
  }

  forget(pipe) {
    this.pipes.delete(pipe.id);
    this.parts.drop(pipe.id);
    if (this.draining && this.pipes.size === 0) this.endWell();
  }

  /** shutdown lets what runs finish, refuses more, and closes the session. */
  shutdown() {
    if (!this.draining && !this.over) {
      this.draining = true;
      this.send({ type: 'drain', last: this.lastTheirs < 0 ? null : this.lastTheirs });
      for (const pipe of this.parts.opens()) {
        this.parts.drop(pipe);
        this.send({ type: 'close', pipe, outcome: 'refused', code: Code.Unavailable, message: 'this side ends, and runs no more' });
      }
      this.beginDrain();
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
    this.nobodyWaits();
    this.wire.close();
    this.settle.reject(abort);
    this.settleEnd(abort);
  }

  describe() { return `${Buffer.from(this.peer.node ?? []).toString() || 'somebody'}, ${this.codec}${this.over ? `, ended: ${nameOf(this.over.code)}` : ''}`; }
}
