/** Label and field selectors of lists and watches. */
import type { StoredObject } from './object-store.js';

export type Selects = (object: StoredObject) => boolean;

const KEY = String.raw`([\w./-]+)`;
const COMPARED = new RegExp(`^${KEY}\\s*(==?|!=)\\s*([^\\s,]*)$`);
const IN_SET = new RegExp(`^${KEY}\\s+(in|notin)\\s*\\(([^)]*)\\)$`);
const EXISTS = new RegExp(`^(!?)\\s*${KEY}$`);

/** The parts between commas that are in no parentheses. */
const PARTS = /(?:\([^)]*\)|[^,(])+/g;

/**
 * What a request selects.
 * @throws {SyntaxError} for a selector that cannot be parsed.
 */
export function selectorOf(query: URLSearchParams, namespace: string | undefined): Selects {
  const parts = (name: string): string[] =>
    ((query.get(name) ?? '').match(PARTS) ?? []).map((part) => part.trim());
  const labels = parts('labelSelector').map(labelRequirement);
  const fields = parts('fieldSelector').map(fieldRequirement);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    labels.every((accepts) => accepts(object.metadata.labels ?? {})) &&
    fields.every((accepts) => accepts(object));
}

function labelRequirement(part: string): (labels: Readonly<Record<string, string>>) => boolean {
  const [, key = '', operator, value = ''] = COMPARED.exec(part) ?? IN_SET.exec(part) ?? [];
  if (operator !== undefined) {
    const values = value.split(',').map((each) => each.trim());
    const isIn = !['!=', 'notin'].includes(operator);
    return (labels) => (Object.hasOwn(labels, key) && values.includes(labels[key] ?? '')) === isIn;
  }
  const [, not, name] = EXISTS.exec(part) ?? [];
  if (name === undefined) throw new SyntaxError(`unable to parse requirement: ${part}`);
  return (labels) => Object.hasOwn(labels, name) === (not === '');
}

function fieldRequirement(part: string): (object: StoredObject) => boolean {
  const [, path, operator, value] = COMPARED.exec(part) ?? [];
  if (path === undefined) throw new SyntaxError(`invalid field selector: ${part}`);
  return (object) => {
    const found = path.split('.').reduce<unknown>((node, key) => {
      return Object.hasOwn(Object(node) as object, key) ? (node as Record<string, unknown>)[key] : undefined;
    }, object);
    const isPlain = typeof found === 'string' || typeof found === 'number' || typeof found === 'boolean';
    return ((isPlain ? String(found) : '') === value) === (operator !== '!=');
  };
}
