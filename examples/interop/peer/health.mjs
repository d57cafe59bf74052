// Functions 65281 and 65282, health and its changes: section 15 of the protocol.

import { Abort, Code } from './errors.mjs';
import { keyed, named } from './standard.mjs';

const query = { parts: 1 };
const MOST_PARTS = 64;

export const State = Object.freeze({ unknown: 0, serving: 1, notServing: 2 });

/** Health holds the states of the parts of a program, of which '' is the whole. */
export class Health {
  states = new Map([['', State.serving]]);
  watchers = new Set(); // functions to call when anything changes

  set(part, state) {
    this.states.set(part, state);
    const watching = this.watchers;
    this.watchers = new Set();
    watching.forEach((wake) => wake());
  }

  changed() { return new Promise((wake) => this.watchers.add(wake)); }

  /** told returns what a peer is told that asks so. draining says that this side is about to go. */
  told(params, codec, draining) {
    const { parts } = named(query, params ?? {}, codec);
    if (parts?.length > MOST_PARTS) throw new Abort(Code.BadParams, `${parts.length} parts, and at most ${MOST_PARTS} may be asked for`);
    const names = parts?.length ? parts : ['', ...this.states.keys()];
    const state = (part) => (part === '' && draining ? State.notServing : this.states.get(part) ?? State.unknown);
    return Object.fromEntries(names.map((part) => [part, state(part)]));
  }

  /** check is the function health. */
  check(params, { session }) { return this.told(params, session.codec, session.draining); }

  /** watch is the function of its changes. The end of the call wakes it as the end of the session does. */
  async watch(params, { session, pipe }) {
    let before = {};
    for (;;) {
      const over = session.draining || session.drained, changed = this.changed();
      const now = this.told(params, session.codec, session.draining);
      const news = Object.entries(now).filter(([part, state]) => before[part] !== state);
      const sending = news.length > 0 && pipe.send(session.values.encode(Object.fromEntries(news)));
      if (over) {
        Promise.resolve(sending).catch(() => {}); // what would have to wait is not sent
        return {};
      }
      await Promise.race([sending, session.drains, pipe.result]); // of these the last one fails when the caller gives up
      before = now;
      await Promise.race([changed, session.drains, pipe.result]);
    }
  }
}

/** askHealth returns the parameters that ask for those parts. */
export const askHealth = (parts, codec) => keyed(query, { parts }, codec);
