// One direction of a stream, at its two ends: section 8 of the protocol. All numbers are costs
// since the birth of the pipe.

/** Outgoing is the end that sends. */
export class Outgoing {
  constructor(pipe, limit) {
    Object.assign(this, { pipe, limit, sent: 0 });
    this.asking = 0; // the total of the Ask that stands
    this.askedAt = 0; // what was sent before it
    this.allowed = 0; // the total of the Allow for the next Block
  }

  /**
   * depart counts a Block that may leave now. Where it may not, credit comes by itself, or this
   * asks for it.
   */
  depart(cost) {
    const total = this.sent + cost;
    if (total <= Math.max(this.limit, this.allowed)) {
      this.sent = total;
      this.allowed = 0; // it was for one Block, whatever that costs
      return true;
    }
    if (this.allowed) this.giveBack();
    if (cost > this.pipe.session.peer.early && !this.asking) {
      this.asking = total;
      this.askedAt = this.sent;
      this.ask(total);
    }
    return false;
  }

  ask(total) { this.pipe.session.send({ type: 'ask', pipe: this.pipe.id, sent: this.sent, total }); }

  giveBack() {
    this.allowed = 0;
    this.ask(this.sent);
  }

  credit(limit) {
    this.limit = Math.max(this.limit, limit);
    if (this.limit >= this.asking) this.asking = 0;
  }

  allow(total) {
    if (total !== this.asking) return;
    this.asking = 0;
    this.allowed = total;
    if (this.sent !== this.askedAt) this.giveBack(); // a Block that has left since may have used it up
  }
}

/** Incoming is the end that receives. */
export class Incoming {
  constructor(pipe, limit, window = 0) {
    Object.assign(this, { pipe, limit, window, received: 0, taken: 0 });
    this.waits = 0; // how many calls of recv wait for a Block
    this.ask = null; // {sent, total} of the Ask that stands
    this.allowed = 0; // the total of the Allow that is out
    this.debt = 0; // the room that it has
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

  /** fits tells whether a Block of that cost is granted. */
  fits(cost) { return this.received + cost <= Math.max(this.limit, this.allowed); }

  /** arrive counts a Block. It returns whether that was granted. */
  arrive(cost) {
    const granted = this.fits(cost);
    this.received += cost;
    if (!granted) return false;
    this.takeBack();
    return true;
  }

  take(cost) {
    this.taken += cost;
    this.credit();
  }

  /**
   * credit tells the peer of a higher limit if half of the window is owed, an Ask brings it out, or
   * a Block might not fit that does not ask.
   */
  credit() {
    const owed = this.taken + this.window - this.limit;
    const little = this.limit - this.taken < this.pipe.session.own.early;
    const due = owed >= this.window / 2 || this.taken >= this.ask?.sent || little;
    if (this.ended || this.window === 0 || owed <= 0 || !due) return;
    this.limit += owed;
    if (this.limit >= this.ask?.total) this.setAsk(null);
    this.pipe.session.send({ type: 'credit', pipe: this.pipe.id, limit: this.limit });
  }

  /** asked takes an Ask. It returns what breaks the protocol, if anything does. */
  asked({ sent, total }) {
    if (this.ended || this.limit === Infinity) return '';
    if (sent !== this.received) return `an Ask for pipe ${this.pipe.id} after ${sent}, and ${this.received} came`;
    const asks = total > sent && total > this.limit && total - sent <= this.room.largest;
    this.setAsk(asks ? { sent, total } : null);
    this.takeBack();
    this.credit();
    this.room.allow();
    return '';
  }

  /** skipped takes a Skip. It returns what breaks the protocol, if anything does. */
  skipped({ sent }) {
    if (this.ended || this.limit === Infinity) return '';
    if (sent < this.received || sent > this.limit) return `a Skip of pipe ${this.pipe.id} to ${sent}, of ${this.received} to ${this.limit}`;
    this.taken += sent - this.received;
    this.received = sent;
    return '';
  }

  setAsk(ask) {
    this.ask = ask;
    this.room.asking.delete(this);
    if (ask) this.room.asking.add(this);
  }

  /** ready says whether a Block would be taken on arrival. */
  ready() { return this.waits > 0 && this.taken === this.received; }

  allow(debt) {
    Object.assign(this, { allowed: this.ask.total, debt });
    this.setAsk(null);
    this.pipe.session.send({ type: 'allow', pipe: this.pipe.id, total: this.allowed });
  }

  takeBack() {
    const { debt } = this;
    this.allowed = this.debt = 0;
    if (debt > 0) this.room.free(debt);
  }

  /** end: nothing more comes, or nothing more is wanted. */
  end() {
    if (this.ended) return;
    this.ended = true;
    this.setAsk(null);
    this.takeBack();
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
