import { onTestFinished } from 'vitest';

import { Component, type ComponentEvents, type ComponentStatus } from '../../src/core/lifecycle/component.js';
import { systemClock } from '../../src/core/ports/clock.js';
import type { StatusDescription } from '../../src/core/telemetry/status-description.js';
import type { ComponentTelemetry } from '../../src/core/telemetry/telemetry-definitions.js';
import { loaderDescription } from '../../src/config/loader-status.js';
import { tlsFilesDescription } from '../../src/tls/tls-files.js';
import { refresherDescription } from '../../src/token/refresher-status.js';
import { tokenFileDescription } from '../../src/token/token-file.js';
import { watcherDescription } from '../../src/watch/watcher-status.js';

/** As the real components describe theirs. */
const DESCRIPTIONS: Readonly<Record<string, StatusDescription<never>>> = {
  ResilientWatcher: watcherDescription,
  ConfigLoader: loaderDescription,
  TokenRefresher: refresherDescription,
  TokenFile: tokenFileDescription,
  TlsFiles: tlsFilesDescription,
  VolumePublisher: { worksIdle: true },
};

type AnyEvents = ComponentEvents & Record<string, [payload?: object]>;

/** A component that emits events on behalf of a test. */
export class SampleComponent extends Component<AnyEvents, ComponentStatus> {
  /** Added to its status. */
  details: object;
  readonly emitEvent = this.dispatch.bind(this);
  readonly work = this.trace.bind(this);

  /** @param telemetry as a component of a package brings it. */
  constructor(kind: string, name: string, details: object = {}, telemetry?: ComponentTelemetry) {
    const description = {
      ...(DESCRIPTIONS[kind] as StatusDescription<ComponentStatus>),
      ...(telemetry && { telemetry }),
    };
    super({ kind, name, signal: undefined, clock: systemClock, description });
    this.details = details;
    this.on('error', () => {});
    onTestFinished(() => this.close());
  }

  status(): ComponentStatus {
    return { name: this.name, state: this.state, lastError: this.lastError, ...this.details };
  }

  protected override get purpose(): string {
    return 'sample';
  }
}

/** The details of a watcher that does its work. */
export const WATCHING = {
  path: '/etc/policy/policy.yaml',
  state: 'watching',
  target: 'file',
  revision: null,
  backend: 'fs',
  degraded: null,
  restarts: 0,
  checks: 3,
  changes: 1,
  resyncs: 0,
  lastChangeAt: 1_700_000_000_000,
  lastCheckAt: 1_700_000_005_000,
  sinceLastCheckMs: 4_000,
  checkIntervalMs: 5_000,
  watchedDirectories: ['/etc/policy'],
  warnings: [],
} as const;
