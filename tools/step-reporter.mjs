/**
 * Tells `tools/test-all.mjs` of a step: the tests that were skipped, with the reason that they give, are added to the file
 * `SKIPPED_LIST`; files that begin and end are added to `RUNNING_LIST`, for a step that does not end.
 */
import { appendFileSync } from 'node:fs';

export default class StepReporter {
  onTestModuleStart({ relativeModuleId }) {
    appendFileSync(process.env.RUNNING_LIST, `begins ${relativeModuleId}\n`);
  }

  onTestModuleEnd({ relativeModuleId }) {
    appendFileSync(process.env.RUNNING_LIST, `ends ${relativeModuleId}\n`);
  }

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
