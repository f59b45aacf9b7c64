/** Contents that carry their own checksum: a part of one, or a mixture of two, is recognised. */
import { createHash } from 'node:crypto';

const hashOf = (body) => createHash('sha256').update(body).digest('hex');

/** A text that names `number` and ends with its checksum. Sizes vary, up to a few pages. */
export function seal(number) {
  const body = `${number} ${'x'.repeat((number * 2_357) % 9_973)} `;
  return body + hashOf(body);
}

/** Whether it is one sealed text, no more and no less. */
export function isSealed(text) {
  return text.length > 64 && text.slice(-64) === hashOf(text.slice(0, -64));
}
