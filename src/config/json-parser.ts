import { JsonReader } from './json-reader.js';
import type { ConfigParser } from './parser.js';

/** Parses JSON (RFC 8259). Stricter than `JSON.parse`: duplicate keys are refused. */
export const jsonParser: ConfigParser = {
  name: 'JSON',
  parse: (text) => new JsonReader(text).read(),
};
