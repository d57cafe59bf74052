/** ByteQueue holds what has arrived until there is enough of it. */
export class ByteQueue {
  chunks = [];
  length = 0;

  push(chunk) {
    this.chunks.push(chunk);
    this.length += chunk.length;
  }

  /** peek returns the first n bytes, of which there have to be so many, and leaves them. */
  peek(n) {
    if (this.chunks[0].length < n) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0].subarray(0, n);
  }

  /** take returns the first n bytes, of which there have to be so many. */
  take(n) {
    this.length -= n;
    if (n === 0) return Buffer.alloc(0);
    if (this.chunks[0].length < n) this.chunks = [Buffer.concat(this.chunks)];
    const first = this.chunks[0];
    if (first.length === n) return this.chunks.shift();
    this.chunks[0] = first.subarray(n);
    return first.subarray(0, n);
  }
}
