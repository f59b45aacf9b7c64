/** Finds pods in which Kubernetes sets variables for a Service beside, or under the prefix of, those of the program. */
import { fields, list, text, type Fields, type Pod } from './fields.js';
import { finding, type Finding } from './finding.js';

/** A Service named `app` sets `APP_PORT=tcp://…` in every pod of its namespace without `enableServiceLinks: false`. */
export function serviceLinks(pod: Pod, services: readonly Fields[]): Finding[] {
  const { where, spec, labels, namespace } = pod;
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
      if (name === '' || (!isRead && !selects(service, labels))) return [];
      const message = `${where}: the Service ${name} sets ${prefix}PORT=tcp://… in its containers, where a program may read it as its own`;
      return [finding('SERVICE_LINKS', message)];
    });
}

function selects(service: Fields, labels: Fields): boolean {
  const selector = Object.entries(fields(fields(service['spec'])['selector']));
  return selector.length > 0 && selector.every(([key, value]) => labels[key] === value);
}
