import { styleText } from 'node:util';

/** Colors on a terminal, plain text in a log. */
export const color = (style, text) => (process.stdout.isTTY ? styleText(style, text) : text);

/** Prints each expectation and whether it was met, and counts those that were not. */
export function createReport() {
  const report = {
    broken: 0,
    scene: (title) => console.log(`\n${color('cyan', title)}`),
    line(ok, ms, text) {
      const mark = ok ? color('green', '✓') : color('red', '✗');
      const time = ms === undefined ? ''.padStart(10) : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`.padStart(10);
      console.log(`  ${mark} ${color('bold', time)}  ${text}`);
      if (!ok) report.broken += 1;
    },
  };
  return report;
}
