/** Finds pods in which Kubernetes sets variables for a Service beside, or under the prefix of, those of the program. */
import { fields, list, text, type Fields, type Pod } from './fields.js';
import { finding, type Finding } from './finding.js';

/** How many pods are named. */
const MAX_NAMED = 5;

/**
 * A Service named `app` sets `APP_PORT=tcp://…` in every pod of its namespace without `enableServiceLinks: false`. That
 * is so in most clusters and rarely hurts, so it is one finding for all pods.
 */
export function serviceLinks(pods: readonly Pod[], services: readonly Fields[]): Finding[] {
  const found = pods.flatMap((pod) => {
    const prefixes = prefixesIn(pod, services);
    return prefixes.length > 0
      ? [`${pod.where} (${prefixes.map((prefix) => `${prefix}PORT`).join(', ')})`]
      : [];
  });
  if (found.length === 0) return [];
  const others = found.length > MAX_NAMED ? ` and ${found.length - MAX_NAMED} more` : '';
  const message = `the name of a Service sets a variable such as APP_PORT=tcp://…, which a program may read as its own, in ${found.slice(0, MAX_NAMED).join(', ')}${others}`;
  return [finding('SERVICE_LINKS', message)];
}

/** The prefixes of the Services that select the pod, or that are named like variables of it. */
function prefixesIn({ spec, labels, namespace }: Pod, services: readonly Fields[]): string[] {
  if (spec['enableServiceLinks'] === false || list(spec['containers']).length === 0) return [];
  const names = ['initContainers', 'containers']
    .flatMap((key) => list(spec[key]))
    .flatMap(({ env, envFrom }) => [
      ...list(env).map(({ name }) => text(name)),
      ...list(envFrom).map(({ prefix }) => text(prefix)),
    ]);
  return services
    .filter(({ metadata }) => text(fields(metadata)['namespace']) === namespace)
    .flatMap((service) => {
      const name = text(fields(service['metadata'])['name']);
      const prefix = `${name.toUpperCase().replaceAll('-', '_')}_`;
      const isRead = names.some((each) => each.startsWith(prefix));
      return name !== '' && (isRead || selects(service, labels)) ? [prefix] : [];
    });
}

function selects(service: Fields, labels: Fields): boolean {
  const selector = Object.entries(fields(fields(service['spec'])['selector']));
  return selector.length > 0 && selector.every(([key, value]) => labels[key] === value);
}
