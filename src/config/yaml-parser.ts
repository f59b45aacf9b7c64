import { unavailable } from './optional-package.js';
import { ParseFailure, type ConfigParser } from './parser.js';

/**
 * YAML 1.2, one document, by the optional package `yaml`, which is loaded when first used. Duplicate keys, unknown
 * tags and aliases that multiply beyond the package's limit are refused. The package's messages quote the text, so
 * only its error codes are shown.
 */
export const yamlParser: ConfigParser = {
  name: 'YAML',
  async parse(text) {
    const { LineCounter, parseDocument } = await loadYaml();
    const lines = new LineCounter();
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      stringKeys: true,
      uniqueKeys: true,
    });
    // A warning is text that means something else than its author thought, as an unknown tag does.
    const [fault] = [...document.errors, ...document.warnings];
    if (fault) {
      const { line, col } = lines.linePos(fault.pos[0]);
      throw new ParseFailure(`not valid YAML: ${inWords(fault.code)}`, { line, column: col });
    }
    try {
      return document.toJS() as unknown;
    } catch {
      throw new ParseFailure('not valid YAML: an alias without an anchor, or too many aliases');
    }
  },
};

/** Versions before 2.6 ignore `stringKeys` silently, and version 1 has another API. */
async function loadYaml(): Promise<typeof import('yaml')> {
  const cannotUse = unavailable('yaml', '2.6 or later');
  const yaml: Partial<typeof import('yaml')> = await import('yaml').catch(cannotUse);
  const refusesKeys = (yaml.parseDocument?.('? [key]', { stringKeys: true }).errors.length ?? 0) > 0;
  return refusesKeys ? (yaml as typeof import('yaml')) : cannotUse();
}

function inWords(code: string): string {
  return code.toLowerCase().replaceAll('_', ' ');
}
