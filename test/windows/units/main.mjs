/** Runs the bundled unit tests, one file after another: `node main.mjs [NAME…]`. */
/* global FILES */
import '../../support/other-systems.ts';
import { reasons, runAll } from './vitest.mjs';

const wanted = process.argv.slice(2);
const total = { passed: 0, skipped: 0, failed: 0 };
for (const file of FILES) {
  if (wanted.length > 0 && !wanted.some((name) => file.includes(name))) continue;
  const began = performance.now();
  await import(new URL(`../../../${file}`, import.meta.url));
  const counts = await runAll(file);
  for (const [what, count] of Object.entries(counts)) total[what] += count;
  const { passed, skipped, failed } = counts;
  console.log(
    `${file}: ${passed} passed, ${skipped} skipped, ${failed} failed (${Math.round(performance.now() - began)} ms)`,
  );
}
for (const [reason, count] of reasons) console.log(`${count} skipped: ${reason}`);
const { passed, skipped, failed } = total;
console.log(`${passed} unit tests passed, ${skipped} skipped, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
