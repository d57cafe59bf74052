// A wire carries whole frames, in order: section 2 of the protocol. Here is what TCP and WebSocket have in common, and TCP; websocket.mjs has the other.

import { connect as connectTCP, createServer } from 'node:net';
import { ByteQueue } from './bytequeue.mjs';
import { acceptWebSocket, dialWebSocket } from './websocket.mjs';

const FULL = 1 << 20; // bytes that wait for the socket; senders hold back from there
const LINGER = 1000; // milliseconds for the peer to read the last frame, and to hang up

/** Wire sends and receives frames over a socket, which a framing makes of bytes and takes apart. */
export class Wire {
  most = 8192; // bytes of the largest frame that is accepted; what the handshake allows, until the session sets it
  onframe = () => {};
  onend = () => {}; // once, with the Error that ended the wire, or undefined after an end in good order

  constructor(socket, framing, rest) {
    this.socket = socket;
    this.framing = framing;
    this.queue = new ByteQueue();
    this.writable = null; // a promise while the socket is full
    this.corked = false;
    if (rest?.length) this.queue.push(rest);
    socket.setNoDelay(true);
    socket.on('error', (e) => { this.failure ??= e; });
    socket.on('close', () => this.end());
    socket.on('end', () => {
      if (this.queue.length > 0 || framing.cut) this.failure ??= new Error('the wire was cut');
      socket.end();
    });
    socket.on('drain', () => this.drained());
  }

  /** start lets frames come. */
  start() {
    this.socket.on('data', (chunk) => {
      this.queue.push(chunk);
      this.read();
    });
    this.read();
  }

  read() {
    try {
      while (!this.closed && !this.paused) {
        const frame = this.framing.next(this.queue, this.most, (control) => this.write(control));
        if (!frame) break;
        this.onframe(frame);
      }
      if (this.framing.over) this.socket.end();
    } catch (e) {
      this.onframe(e); // the session says what is wrong with it, and closes
    }
  }

  /** send sends one frame. It never waits; who sends much awaits room() first. */
  send(frame) { this.write(this.framing.wrap(frame)); }

  write(bytes) {
    if (this.socket.destroyed || this.socket.writableEnded) return;
    if (!this.corked) { // what one turn of the event loop sends goes out at once
      this.corked = true;
      this.socket.cork();
      process.nextTick(() => {
        this.corked = false;
        this.socket.uncork();
      });
    }
    this.socket.write(bytes);
  }

  /** room returns a promise if senders should hold back. It resolves when the socket has taken what waits, or has ended. */
  room() {
    if (this.socket.destroyed || this.socket.writableLength < FULL) return null;
    this.writable ??= Promise.withResolvers?.() ?? withResolvers();
    return this.writable.promise;
  }

  drained() {
    this.writable?.resolve();
    this.writable = null;
  }

  /** pause leaves it to the transport to slow the peer down; resume undoes it. */
  pause() {
    this.paused = true;
    this.socket.pause();
  }

  resume() {
    this.paused = false;
    this.socket.resume();
    setImmediate(() => this.read());
  }

  /** close sends what waits, and lets the peer read it and hang up first. Nothing more is received. */
  close() {
    if (this.closed) return;
    this.closed = true;
    this.socket.removeAllListeners('data');
    this.socket.resume(); // reads and discards
    this.write(this.framing.goodbye());
    this.socket.end();
    setTimeout(() => this.socket.destroy(), LINGER).unref();
  }

  end() {
    this.drained();
    const ended = this.onend;
    this.onend = () => {};
    ended(this.failure);
  }
}

function withResolvers() {
  let resolve;
  return { promise: new Promise((r) => { resolve = r; }), resolve };
}

/** lengths is the framing of byte streams: 4 bytes of length, big endian, and the frame. */
const lengths = () => ({
  next(queue, most) {
    if (queue.length < 4) return null;
    const n = queue.peek(4).readUInt32BE();
    if (n > most) throw new Error(`a frame of ${n} bytes is above the limit of ${most}`);
    if (queue.length < 4 + n) return null;
    queue.take(4);
    return queue.take(n);
  },
  wrap(frame) {
    const length = Buffer.allocUnsafe(4 + frame.length);
    length.writeUInt32BE(frame.length);
    frame.copy(length, 4);
    return length;
  },
  goodbye: () => Buffer.alloc(0),
});

/** dial connects to tcp://host:port or ws://host:port/path. */
export async function dial(url) {
  const u = new URL(url);
  if (u.protocol === 'ws:') {
    const { socket, framing, rest } = await dialWebSocket(u);
    return new Wire(socket, framing, rest);
  }
  if (u.protocol !== 'tcp:') throw new Error(`${url}: this peer speaks tcp:// and ws:// only`);
  const socket = connectTCP({ host: host(u), port: +u.port, allowHalfOpen: true });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return new Wire(socket, lengths());
}

/** listen calls onwire with each wire that is accepted, and returns where it listens and what ends that. */
export async function listen(url, onwire) {
  const u = new URL(url);
  let server;
  if (u.protocol === 'ws:') server = acceptWebSocket(u, (socket, framing, rest) => onwire(new Wire(socket, framing, rest)));
  else if (u.protocol === 'tcp:') server = createServer({ allowHalfOpen: true }, (socket) => onwire(new Wire(socket, lengths())));
  else throw new Error(`${url}: this peer speaks tcp:// and ws:// only`);
  await new Promise((resolve, reject) => server.once('error', reject).listen(+u.port, host(u), resolve));
  u.port = server.address().port;
  return { url: u.protocol === 'ws:' ? u.href : `tcp://${u.hostname}:${server.address().port}`, close: () => server.close() };
}

const host = (u) => u.hostname.replace(/^\[|\]$/g, '');
