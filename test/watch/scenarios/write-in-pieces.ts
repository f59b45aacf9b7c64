import { appendFileSync, closeSync, openSync, writeSync } from 'node:fs';

import type { Scene } from '../../support/scene.js';

/** Writes "two, the rest" to a file, in two pieces: nothing is reported before the second. */
export async function writeInPieces(scene: Scene, file: string, flag: 'w' | 'wx'): Promise<void> {
  const fd = openSync(file, flag);
  await scene.unreported();
  writeSync(fd, 'two, ');
  await scene.unreported();
  writeSync(fd, 'the rest');
  closeSync(fd);
}

/** Writes a file in place, in pieces, and appends to it; `report` is what is to be reported of a content. */
export async function rewriteAndAppend(
  scene: Scene,
  file: string,
  report: (content: string) => string,
): Promise<void> {
  await writeInPieces(scene, file, 'w');
  await scene.reports(report('two, the rest'));
  appendFileSync(file, ' and more');
  await scene.reports(report('two, the rest and more'));
}
