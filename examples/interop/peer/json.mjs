// The value codec "json". JSON.parse rounds integers, and JSON.stringify writes floating point as integers; here neither happens.

import { randomBytes } from 'node:crypto';
import { exact, LONGEST } from './integers.mjs';

const mark = randomBytes(16).toString('hex'); // begins texts that stand for integers; no peer can guess it

/** parse returns the value of a JSON text. Throws SyntaxError. */
export function parse(text) {
  const value = JSON.parse(text);
  if (!/\d{16}/.test(text)) return value;
  return JSON.parse(markLong(text), (_, v) => (isMarked(v) ? BigInt(v.slice(mark.length)) : v));
}

const isMarked = (v) => typeof v === 'string' && v.startsWith(mark);

/** markLong replaces the integers of a JSON text that no number holds exactly. */
function markLong(text) {
  const parts = [];
  for (let i = 0; i < text.length;) {
    const begin = i;
    if (text[i] === '"') i = behindString(text, i);
    else if (/[-\d]/.test(text[i])) i = behindNumber(text, i);
    else i++;
    const token = text.slice(begin, i);
    parts.push(isLong(token) ? `"${mark}${token}"` : token);
  }
  return parts.join('');
}

function behindString(text, i) {
  for (i++; text[i] !== '"'; i++) if (text[i] === '\\') i++;
  return i + 1;
}

function behindNumber(text, i) {
  while (i < text.length && /[-+.\deE]/.test(text[i])) i++;
  return i;
}

function isLong(token) {
  if (token.length < 16 || !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token))) return false;
  if (token.length > 2 * LONGEST) throw new SyntaxError(`an integer of ${token.length} digits`);
  return true;
}

/** stringify returns the JSON text of a value. Throws TypeError for what has none. */
export function stringify(v) {
  const text = JSON.stringify(v ?? null, (_, x) => {
    if (typeof x === 'bigint') return mark + x;
    if (Number.isInteger(x) && exact(x) !== x) return mark + x.toExponential(); // it is floating point, and may be rounded
    return x;
  });
  if (text === undefined) throw new TypeError(`JSON has no encoding for a ${typeof v}`);
  return text.includes(mark) ? text.replaceAll(new RegExp(`"${mark}([^"]*)"`, 'g'), '$1') : text;
}
