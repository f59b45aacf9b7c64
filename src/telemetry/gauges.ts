/** Reads the values of the gauges from the live components, when they are collected. */
import type { ComponentHandle } from '../core/telemetry-messages.js';
import type { Labels, Metric } from '../core/telemetry-definitions.js';
import { ownLabel, type Sample } from './metrics.js';

/**
 * The samples of one gauge, each set of labels once.
 * @param bounded the labels of a sample; components beyond the limit share their labels.
 */
export function samplesOf(
  name: string,
  gauge: Metric,
  components: Iterable<ComponentHandle>,
  bounded: (labels: Labels) => Labels,
): Sample[] {
  const pick = gauge.of === 'least' ? Math.min : Math.max;
  const samples = new Map<string, Sample>();
  const counted = new Set<string>();
  for (const component of components) {
    for (const { metric, labels, value, item } of component.metrics?.() ?? []) {
      if (metric !== name) continue;
      const all = bounded({ ...ownLabel(gauge, component.name), ...labels });
      const key = JSON.stringify(all);
      const other = samples.get(key)?.value;
      if (item !== undefined) {
        const id = JSON.stringify([key, item]);
        if (!counted.has(id)) samples.set(key, { labels: all, value: (other ?? 0) + value });
        counted.add(id);
      } else {
        samples.set(key, { labels: all, value: other === undefined ? value : pick(other, value) });
      }
    }
  }
  return [...samples.values()];
}
