/** The ValidatingAdmissionPolicy of `deploy/` says the same of a pod as `doctor --manifest`. */
import { Environment } from '@marcbachmann/cel-js';
import { findingsInManifests } from 'resilient-watcher/doctor';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

import { policy, POLICY_IDS, POLICY_PODS, workloadsOf } from '../support/policy-pods.js';

const cel = new Environment().registerVariable('object', 'dyn').registerVariable('variables', 'map');

/** The findings that the policy warns of, as the API server evaluates it: the variables in their order. */
function warnings(object: unknown): string[] {
  const variables: Record<string, unknown> = {};
  const evaluate = (expression: string): unknown =>
    cel.evaluate(expression, { object, variables }) as unknown;
  for (const { name, expression } of policy.spec.variables) variables[name] = evaluate(expression);
  return policy.spec.validations
    .filter(({ expression }) => evaluate(expression) !== true)
    .map(({ message }) => message.replace(/:.*/, ''));
}

test.each(POLICY_PODS)('%s: %j', (text, ids) => {
  for (const object of workloadsOf(parse(text) as object)) {
    expect(warnings(object)).toEqual(ids);
    const found = findingsInManifests([object]).map(({ id }) => id);
    expect(found.filter((id) => POLICY_IDS.includes(id))).toEqual(ids);
  }
});
