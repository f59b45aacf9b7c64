import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import type { KubeletVolumeOptions, VolumeFiles } from 'resilient-watcher/testing';
import { onTestFinished } from 'vitest';

/** A volume that another process publishes, as kubelet is one. It ends with the test. */
export class KubeletProcess {
  readonly #child;
  readonly #answers: AsyncIterator<string>;

  constructor(directory: string) {
    const path = fileURLToPath(new URL('kubelet-process.mjs', import.meta.url));
    const child = spawn(process.execPath, [path, directory], { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = new Promise((resolve) => child.once('close', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    this.#child = child;
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  /** Publishes revisions, one after the other without a pause. */
  publish(revisions: readonly VolumeFiles[], swap: KubeletVolumeOptions['swap'] = 'rename'): Promise<void> {
    return this.#order({ revisions, swap });
  }

  /** Deletes the volume, and with it every watch of its directories. */
  remove(): Promise<void> {
    return this.#order({ remove: true });
  }

  async #order(order: unknown): Promise<void> {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
    const { done } = await this.#answers.next();
    if (done) throw new Error('The process that publishes has ended');
  }
}
