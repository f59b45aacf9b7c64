/** Adds the tests that were skipped to the file `SKIPPED_LIST`, with the reason that they give. */
import { appendFileSync } from 'node:fs';

export default class SkippedReporter {
  onTestRunEnd(modules) {
    const lines = new Set();
    for (const { children, relativeModuleId } of modules) {
      for (const test of children.allTests('skipped')) {
        // A suite that is skipped as a whole says why in its name.
        const suite = test.parent.type === 'suite' ? test.parent.fullName : undefined;
        const { note } = test.result();
        lines.add(`${relativeModuleId}: ${note ?? suite ?? test.fullName}`);
      }
    }
    if (lines.size > 0) appendFileSync(process.env.SKIPPED_LIST, `${[...lines].join('\n')}\n`);
  }
}
