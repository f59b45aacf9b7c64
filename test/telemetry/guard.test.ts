import { expect, test } from 'vitest';

import { FakeTokenClient } from 'resilient-watcher/testing';

import { TokenRefresher } from 'resilient-watcher';
import { EVENTS } from '../../src/core/telemetry/telemetry-points.js';
import { observe } from '../../src/telemetry/observe.js';

test('a token refresher never publishes a token, whatever the failure', async () => {
  const shown: string[] = [];
  using _subscription = observe({
    point: ({ message }) => void shown.push(JSON.stringify([message, message.component.status()])),
    settled: ({ message }) => void shown.push(JSON.stringify(message)),
  });
  let token = '';
  const client = new FakeTokenClient();
  await using refresher = new TokenRefresher({
    client,
    tokenFile: false,
    sinks: [
      function vault({ value }) {
        token = value;
        throw new Error(`The vault does not take ${value}`);
      },
    ],
  });
  refresher.on('undelivered', () => {});
  refresher.on('token', ({ token: { value } }) => {
    throw new Error(`No use for ${value}`);
  });
  refresher.on('error', () => {});
  await refresher.start();

  expect(token).toMatch(/^eyJ/);
  expect(shown.length).toBeGreaterThan(3);
  expect(shown.join('\n')).not.toContain(token);
  expect(Object.keys(EVENTS)).toContain('error');
});
