import { KubeletVolume } from '../../dist/testing.js';

/** CLOCK_MONOTONIC, which all processes of a machine share, ns. */
export const now = () => Number(process.hrtime.bigint());

/** Publishes and returns when the swap began, ns: just before the `rename` that retargets `..data` is called. */
export function publish(directory, files) {
  const steps = new KubeletVolume(directory).steps(files);
  let swapped;
  for (;;) {
    const before = now();
    const step = steps.next();
    if (step.done) return swapped;
    if (step.value.name === 'rename') swapped = before;
  }
}
