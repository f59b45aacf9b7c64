/** Reads the values of the gauges from the live components, when they are collected. */
import type { ComponentHandle } from '../core/telemetry-messages.js';
import { METRICS, type GaugeName, type Labels, type Sample } from './metrics.js';

/** The label that names the component, if the metric has one. */
export function ownLabel(metric: keyof typeof METRICS, name: string): Labels {
  const own = METRICS[metric].labels.find((label) => label === 'loader' || label === 'target');
  return own ? { [own]: name } : {};
}

/**
 * The samples of one gauge, each set of labels once.
 * @param bounded the labels of a sample; components beyond the limit share their labels.
 */
export function samplesOf(
  name: GaugeName,
  components: Iterable<ComponentHandle>,
  bounded: (labels: Labels) => Labels,
): Sample[] {
  const pick = METRICS[name].of === 'least' ? Math.min : Math.max;
  const samples = new Map<string, Sample>();
  const counted = new Set<string>();
  for (const component of components) {
    for (const { metric, labels, value, item } of component.metrics?.() ?? []) {
      if (metric !== name) continue;
      const all = bounded({ ...ownLabel(name, component.name), ...labels });
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
