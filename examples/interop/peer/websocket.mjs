// WebSocket (RFC 6455) as far as the protocol needs it: binary messages, the subprotocol asterisque.1, no extension. Node 20 has no server for it.

import { createHash, randomBytes } from 'node:crypto';
import { createServer, request } from 'node:http';

const SUBPROTOCOL = 'asterisque.1';
const CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10;

const accepts = (key) => createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

/** dialWebSocket opens a connection and returns its socket, the framing, and what came behind the answer. */
export function dialWebSocket(u) {
  const key = randomBytes(16).toString('base64');
  const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Protocol': SUBPROTOCOL };
  return new Promise((resolve, reject) => {
    const req = request(new URL(u.pathname + u.search, `http://${u.host}`), { headers });
    req.once('error', reject);
    req.once('response', (res) => {
      req.destroy();
      reject(new Error(`${u.href}: the server answered ${res.statusCode} and not with a WebSocket`));
    });
    req.once('upgrade', (res, socket, rest) => {
      if (res.headers['sec-websocket-accept'] === accepts(key) && res.headers['sec-websocket-protocol'] === SUBPROTOCOL) {
        return resolve({ socket, framing: messages(true), rest });
      }
      socket.destroy();
      reject(new Error(`${u.href}: the server did not agree to the subprotocol ${SUBPROTOCOL}`));
    });
    req.end();
  });
}

/** acceptWebSocket returns an HTTP server, not yet listening, that calls onsocket with each WebSocket at the URL's path. */
export function acceptWebSocket(u, onsocket) {
  const server = createServer((req, res) => res.writeHead(426, { Upgrade: 'websocket' }).end('there is a WebSocket here, and nothing else\n'));
  server.on('upgrade', (req, socket, rest) => {
    const refuse = (status) => socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n`);
    const key = req.headers['sec-websocket-key'];
    const offered = (req.headers['sec-websocket-protocol'] ?? '').split(',').map((s) => s.trim());
    if (req.url.split('?')[0] !== u.pathname) return refuse('404 Not Found');
    if (req.headers.upgrade.toLowerCase() !== 'websocket' || req.headers['sec-websocket-version'] !== '13' || !key) return refuse('426 Upgrade Required');
    if (!offered.includes(SUBPROTOCOL)) return refuse('400 Bad Request');
    if (req.headers.origin && new URL(req.headers.origin).host !== req.headers.host) return refuse('403 Forbidden'); // a page of another site
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
      + `Sec-WebSocket-Accept: ${accepts(key)}\r\nSec-WebSocket-Protocol: ${SUBPROTOCOL}\r\n\r\n`);
    onsocket(socket, messages(false), rest);
  });
  return server;
}

/** messages is the framing of one side of a WebSocket. Only what clients send is masked. */
function messages(client) {
  let parts = [], size = 0, closed = false, bad = null;

  /** wrap makes one frame of RFC 6455. */
  const wrap = (payload, opcode = BINARY) => {
    const n = payload.length, extended = n < 126 ? 0 : n < 0x10000 ? 2 : 8;
    const head = Buffer.alloc(2 + extended + (client ? 4 : 0));
    head[0] = 0x80 | opcode;
    head[1] = (client ? 0x80 : 0) | (extended === 0 ? n : extended === 2 ? 126 : 127);
    if (extended === 2) head.writeUInt16BE(n, 2);
    if (extended === 8) head.writeBigUInt64BE(BigInt(n), 2);
    if (!client) return Buffer.concat([head, payload]);
    const mask = randomBytes(4);
    mask.copy(head, head.length - 4);
    const masked = Buffer.concat([head, payload]);
    unmask(masked.subarray(head.length), mask);
    return masked;
  };

  const fail = (status, why) => {
    bad = Buffer.of(status >> 8, status & 255);
    throw new Error(why);
  };

  /** one takes one frame from the queue, if it is there. */
  const one = (queue, most) => {
    if (queue.length < 2) return null;
    const [first, second] = queue.peek(2);
    const short = second & 127, extended = short < 126 ? 0 : short === 126 ? 2 : 8;
    const head = 2 + extended + (client ? 0 : 4);
    if ((first & 0x70) !== 0) fail(1002, 'a WebSocket extension that nobody agreed on');
    if (second >> 7 !== (client ? 0 : 1)) fail(1002, 'a WebSocket frame that is masked, or is not, against the rules');
    if (queue.length < head) return null;
    const b = queue.peek(head);
    const n = extended === 0 ? short : extended === 2 ? b.readUInt16BE(2) : Number(b.readBigUInt64BE(2));
    if (size + n > most) fail(1009, `a frame of ${size + n} bytes is above the limit of ${most}`);
    if (queue.length < head + n) return null;
    const mask = Buffer.from(queue.take(head).subarray(head - 4));
    const payload = queue.take(n);
    if (!client) unmask(payload, mask);
    return { final: first >> 7 === 1, opcode: first & 15, payload };
  };

  /** data adds a part of a message, and returns the message if it is the last one. */
  const data = ({ final, opcode, payload }) => {
    if (opcode === TEXT) fail(1003, 'a text message');
    if ((opcode === CONTINUATION) !== parts.length > 0) fail(1002, 'a WebSocket message inside another one');
    parts.push(payload);
    size += payload.length;
    if (!final) return null;
    const message = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    parts = [];
    size = 0;
    return message;
  };

  return {
    wrap: (frame) => wrap(frame),
    goodbye: () => (closed ? Buffer.alloc(0) : wrap(bad ?? Buffer.of(0x03, 0xe8), CLOSE)), // 1000: a normal end
    get over() { return closed; }, // the other side has closed, and has its answer
    get cut() { return !closed; },

    /** next returns the next message, if it is there. write sends the answers to control frames. */
    next(queue, most, write) {
      while (!closed) {
        const f = one(queue, most);
        if (!f) return null;
        if (f.opcode < CLOSE) {
          if (f.opcode > BINARY) fail(1002, `WebSocket opcode ${f.opcode}`);
          const message = data(f);
          if (message) return message;
        } else if (f.opcode > PONG || f.payload.length > 125 || !f.final) {
          fail(1002, 'a WebSocket control frame against the rules');
        } else if (f.opcode === PING) {
          write(wrap(f.payload, PONG));
        } else if (f.opcode === CLOSE) {
          write(wrap(f.payload.subarray(0, 2), CLOSE));
          closed = true;
        }
      }
      return null;
    },
  };
}

/** unmask masks bytes, or undoes it. */
function unmask(bytes, mask) {
  for (let i = 0; i < bytes.length; i++) bytes[i] ^= mask[i & 3];
}
