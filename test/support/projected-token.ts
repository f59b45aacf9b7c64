import { join } from 'node:path';

import { KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';

import { temporaryDirectory } from './temporary-directory.js';

/** A projected token that changes when the test says so. Nothing but `show()` tells of that. */
export class ProjectedToken {
  readonly backend = new ScriptedBackend();
  readonly options = { backend: this.backend, resyncIntervalMs: 0 };
  readonly volume = new KubeletVolume(join(temporaryDirectory(), 'serviceaccount'));

  constructor(text?: string) {
    this.replace(text);
  }

  get path(): string {
    return this.volume.path('token');
  }

  /** The file has this text now, or is gone. */
  replace(text: string | undefined): void {
    this.volume.publish(text === undefined ? {} : { token: text });
  }

  /** The same, and an event came. */
  show(text: string | undefined): void {
    this.replace(text);
    this.backend.hint();
  }
}
