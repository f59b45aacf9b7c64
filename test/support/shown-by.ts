import { inspect } from 'node:util';

/** Everything that printing, serializing or walking an error can show. */
export function shownBy(error: Error): string {
  const parts = [inspect(error, { depth: Infinity, showHidden: true, maxArrayLength: null })];
  for (let link: unknown = error; link instanceof Error; link = link.cause) {
    parts.push(String(link), link.stack ?? '', JSON.stringify(link));
    for (const key of Reflect.ownKeys(link)) parts.push(inspect(link[key as keyof Error], { depth: 20 }));
  }
  return parts.join('\n');
}
