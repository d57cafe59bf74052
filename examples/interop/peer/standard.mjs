// What the maps of the standard functions have in common: section 15 of the protocol. Their keys are integers in CBOR, and names in JSON and MessagePack.

/** named returns a map that has come with the names of its keys, as far as they are known. */
export const named = (names, map, codec) => Object.fromEntries(Object.entries(names).map(([name, key]) => [name, map[codec !== 'cbor' ? name : key]]));

/** keyed returns what is written for an object. */
export const keyed = (names, object, codec) => (codec !== 'cbor' ? object : new Map(Object.entries(object).map(([name, v]) => [names[name], v])));
