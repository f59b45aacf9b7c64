/** The ValidatingAdmissionPolicy of `deploy/` says the same of a pod as `doctor --manifest`. */
import { Environment } from '@marcbachmann/cel-js';
import { findingsInManifests } from '../../src/manifests.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

import { policy, POLICY_IDS, POLICY_PODS, workloadsOf } from '../../../../test/support/policy-pods.js';

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

const conditions = new Environment()
  .registerVariable('object', 'dyn')
  .registerVariable('oldObject', 'dyn')
  .registerVariable('request', 'map');

/** Whether the policy looks at a change of an object. */
function isMatched(oldObject: object | null, object: object): boolean {
  const request = { operation: oldObject ? 'UPDATE' : 'CREATE' };
  return policy.spec.matchConditions.every(
    ({ expression }) => conditions.evaluate(expression, { object, oldObject, request }) === true,
  );
}

test('the policy looks at new pods and at changes of their specification, and at nothing else of those that exist', () => {
  for (const object of workloadsOf({ containers: [{ name: 'c', image: 'a' }] })) {
    const [changed] = workloadsOf({ containers: [{ name: 'c', image: 'b' }] }).filter(
      ({ kind }) => kind === object.kind,
    );
    expect(isMatched(null, object)).toBe(true);
    expect(isMatched(object, changed ?? {})).toBe(true);
    const annotations = { 'resilient-watcher.dev/mounted-versions': 'a' };
    expect(isMatched(object, { ...object, metadata: { annotations, finalizers: [] } })).toBe(false);
    // Nor at another number of replicas.
    if (object.kind !== 'Pod')
      expect(isMatched(object, { ...object, spec: { ...object.spec, replicas: 2 } })).toBe(false);
  }
});
