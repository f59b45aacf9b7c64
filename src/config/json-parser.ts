import { JsonReader } from './json-reader.js';
import type { ConfigParser } from './parser.js';

/** JSON as RFC 8259 has it, and stricter than `JSON.parse`: a key that is there twice is refused. */
export const jsonParser: ConfigParser = {
  name: 'JSON',
  parse: (text) => new JsonReader(text).read(),
};
