/** The text of a file of rules: its values as they are written, and the lines they stand on. */
import { yamlParser, type ConfigParser } from 'resilient-watcher/config';
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node } from 'yaml';

/** What is in the newest revision of the file. */
export class RulesText {
  #document: Document | undefined;
  #lines = new LineCounter();

  /** As `yamlParser`, except that each scalar is its text: in a command, `1.10` and `0x10` are no numbers. */
  readonly parser: ConfigParser = {
    name: yamlParser.name,
    parse: async (text, options) => {
      const values = await yamlParser.parse(text, options);
      this.#lines = new LineCounter();
      const given = { schema: 'failsafe', merge: true, lineCounter: this.#lines } as const;
      this.#document = parseDocument(text, given);
      // What it limits has been checked.
      const written: unknown = this.#document.toJS({ maxAliasCount: -1 });
      return typeof written === 'object' && written !== null ? written : values;
    },
  };

  /** The line of a place such as `rules.0.exec`, or of what it is in; undefined if that is not known. */
  lineOf(place: string): number | undefined {
    let node: unknown = this.#document?.contents;
    let found: Node | undefined;
    for (const name of place.split('.')) {
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
        if (!pair) break;
        found = pair.key as Node;
        node = pair.value;
      } else if (isSeq(node)) {
        node = node.items[Number(name)];
        found = (node as Node | undefined) ?? found;
      } else break;
    }
    const [offset] = found?.range ?? [];
    return offset === undefined ? undefined : this.#lines.linePos(offset).line;
  }
}
