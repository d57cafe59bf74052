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

/** Cut is a Block that is to be sent, as a whole or in parts. */
export class Cut {
  constructor(message) {
    this.message = message;
    this.content = message.payload.length;
    this.at = 0; // bytes of the frame that are sent
    this.sent = 0; // bytes of the payload that are sent
  }

  get begun() { return this.at > 0; }
  get done() { return this.at === this.frame.length; }
  get frame() { return this.encoded ??= encodeFrame(this.message); }

  /** take returns the Block, or the next part of it, with at most so many bytes of the payload. It returns undefined if no part may be that short. */
  take(most) {
    const { frame, at } = this, head = headOf(frame).size, rest = this.content - this.sent;
    if (!at && rest <= most && frame.length <= MOST_FRAME) {
      this.at = frame.length;
      this.sent = this.content;
      return this.message;
    }
    const here = Math.max(0, head - at); // of the head
    const end = rest <= most ? frame.length : at + here + most; // bytes behind the payload cost nothing
    const bytes = frame.subarray(at, Math.min(end, at + MOST_PART));
    if (bytes.length < LEAST_PART && at + bytes.length < frame.length) return undefined;
    this.at += bytes.length;
    this.sent = Math.min(Math.max(0, this.at - head), this.content);
    return { type: 'part', pipe: this.message.pipe, bytes, whole: at ? undefined : frame.length };
  }
}

/** Parts puts messages together of those parts that admit has said yes to. */
export class Parts {
  unfinished = new Map(); // by the ids of their pipes

  constructor(most) { this.most = most; } // bytes of the largest message

  has(pipe) { return this.unfinished.has(pipe); }
  hasBlock(pipe) { return this.unfinished.get(pipe)?.type === 'block'; }

  /** opens returns the pipes of the unfinished Opens. */
  opens() { return [...this.unfinished].filter(([, u]) => u.type === 'open').map(([pipe]) => pipe); }

  /** drop lets go of what is unfinished of a pipe, and says whether something was. */
  drop(pipe) { return this.unfinished.delete(pipe); }

  /** ignore releases an unfinished Block, of which other parts may come. */
  ignore(pipe) { if (this.hasBlock(pipe)) this.unfinished.get(pipe).kept = null; }

  /** begin checks a first part. admit(head) returns false if the message is not wanted, and null if its pipe is closed. */
  begin({ pipe, bytes, whole }, admit) {
    if (whole > this.most) throw new Malformed(`a message of ${whole} bytes begins, and the largest has ${this.most}`);
    if (this.has(pipe)) throw new Malformed(`a message of pipe ${pipe} begins, and the one before is unfinished`);
    const head = headOf(bytes);
    if (head.pipe !== pipe) throw new Malformed(`a part of pipe ${pipe} is of a message of pipe ${head.pipe}`);
    if (head.content !== undefined && (head.size + head.content > whole || whole - head.content > MOST_AROUND[head.type])) {
      throw new Malformed(`a content of ${head.content} bytes in a frame of ${whole}`);
    }
    const wanted = admit(head);
    if (wanted !== null) this.unfinished.set(pipe, { ...head, whole, got: 0, kept: wanted ? [] : null });
  }

  /** contentIn returns how many bytes of the payload of a Block are in its next part. */
  contentIn({ pipe, bytes }) {
    const { size, content, got } = this.unfinished.get(pipe);
    const before = (at) => Math.min(Math.max(0, at - size), content);
    return before(got + bytes.length) - before(got);
  }

  /** add adds a part, the first one included. It returns the message that is complete with it, if one is that somebody wants. */
  add({ pipe, bytes }) {
    const u = this.unfinished.get(pipe);
    u.got += bytes.length;
    if (u.got > u.whole) throw new Malformed(`${u.got} bytes of a message of ${u.whole}`);
    if (u.got < u.whole && bytes.length < LEAST_PART) throw new Malformed(`a part of ${bytes.length} bytes, which is not the last one`);
    u.kept?.push(Buffer.from(bytes)); // which would keep all that came with it
    if (u.got < u.whole) return null;
    this.drop(pipe);
    return u.kept && decodeFrame(Buffer.concat(u.kept));
  }
}
