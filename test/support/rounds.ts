/**
 * How often a test repeats what is left to chance or takes processor time: a few times in `npm test`, in full with
 * `STRESS=1`, as `npm run test:soak` sets it.
 */
export function rounds(usual: number, full: number): number {
  return process.env['STRESS'] === '1' ? full : usual;
}
