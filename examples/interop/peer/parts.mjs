// Large messages cross in parts: section 4 of the protocol.

import { Malformed } from './cbor.mjs';
import { LEAST_PART, MOST_AROUND, MOST_FRAME, MOST_PART, decodeFrame, encodeFrame, headOf } from './frames.mjs';

/** divided returns the frames in which a message crosses: its own, or its parts. */
export function divided(message) {
  const frame = encodeFrame(message);
  if (frame.length <= MOST_FRAME) return [frame];
  const parts = [];
  for (let at = 0; at < frame.length; at += MOST_PART) {
    const bytes = frame.subarray(at, at + MOST_PART);
    parts.push(encodeFrame({ type: 'part', pipe: message.pipe, bytes, whole: at ? undefined : frame.length }));
  }
  return parts;
}

/** Parts puts messages together, each in one buffer, which it takes when admit has said yes. */
export class Parts {
  unfinished = new Map(); // by the ids of their pipes

  constructor(most) { this.most = most; } // bytes of the largest message

  has(pipe) { return this.unfinished.has(pipe); }

  /** opens returns the pipes of the unfinished Opens. */
  opens() { return [...this.unfinished].filter(([, u]) => u.type === 'open').map(([pipe]) => pipe); }

  /** drop lets go of what is unfinished of a pipe, and says whether something was. */
  drop(pipe) { return this.unfinished.delete(pipe); }

  /** begin checks a first part. admit(head) returns false if nobody wants the message. */
  begin({ pipe, bytes, whole }, admit) {
    if (whole > this.most) throw new Malformed(`a message of ${whole} bytes begins, and the largest has ${this.most}`);
    if (this.has(pipe)) throw new Malformed(`a message of pipe ${pipe} begins, and the one before is unfinished`);
    const head = headOf(bytes);
    if (head.pipe !== pipe) throw new Malformed(`a part of pipe ${pipe} is of a message of pipe ${head.pipe}`);
    if (head.content !== undefined && (head.size + head.content > whole || whole - head.content > MOST_AROUND[head.type])) {
      throw new Malformed(`a content of ${head.content} bytes in a frame of ${whole}`);
    }
    const wanted = admit(head);
    this.unfinished.set(pipe, { type: head.type, whole, got: 0, memory: wanted ? Buffer.allocUnsafe(whole) : null });
  }

  /** add adds a part, the first one included. It returns the message that is complete with it, if one is that somebody wants. */
  add({ pipe, bytes }) {
    const u = this.unfinished.get(pipe);
    const got = u.got + bytes.length;
    if (got > u.whole) throw new Malformed(`${got} bytes of a message of ${u.whole}`);
    if (got < u.whole && bytes.length < LEAST_PART) throw new Malformed(`a part of ${bytes.length} bytes, which is not the last one`);
    u.memory?.set(bytes, u.got);
    u.got = got;
    if (got < u.whole) return null;
    this.drop(pipe);
    return u.memory && decodeFrame(u.memory);
  }
}
