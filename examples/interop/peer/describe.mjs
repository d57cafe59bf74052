// Function 65535, describe: section 15 of the protocol.

import { keyed, named } from './standard.mjs';

const query = { functions: 1 };
const info = { number: 1, name: 2, signature: 3 };

/** describe is the function: it tells of a service what it is asked for. */
export function describe(service) {
  return (params, { session }) => {
    const { functions } = named(query, params ?? {}, session.codec);
    const wanted = new Set(functions ?? []);
    return [...service].sort(([a], [b]) => a - b).filter(([number]) => wanted.size === 0 || wanted.has(number))
      .map(([number, f]) => keyed(info, { number, name: f.name, signature: f.stream ? 'a stream' : 'a call' }, session.codec));
  };
}

/** described returns the number and the name of each of these functions that a peer says it has. call calls a function with values. */
export async function described(call, number, functions, codec) {
  const list = await call(number, keyed(query, { functions }, codec));
  return list.map((f) => named(info, f, codec)).map(({ number, name }) => `${number} ${name}`);
}
