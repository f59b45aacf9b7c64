import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

const src = fileURLToPath(new URL('../src', import.meta.url));

/** Bottom first. A file may import from lower layers only; a folder stands for the files in it. */
const layers = [
  ['ports.ts', 'errors.ts'],
  [
    'absolute-path.ts',
    'path-globs.ts',
    'persistent-map.ts',
    'steps.ts',
    'options.ts',
    'backoff.ts',
    'sleep.ts',
    'lifecycle.ts',
    'backend-failure.ts',
    'file-system-kind.ts',
    'volume-layout.ts',
    'writing/process-identity.ts',
    'writing/write-progress.ts',
    'writing/write-queue.ts',
  ],
  [
    'writing/pace.ts',
    'writing/file-content.ts',
    'writing/temporary-name.ts',
    'writing/pending-file.ts',
    'writing/write-source.ts',
  ],
  ['writing/directories.ts'],
  ['atomic-write-file/replace-file.ts', 'atomic-volume/volume-revision.ts'],
  ['atomic-volume/volume-writer.ts'],
  ['atomic-write-file.ts', 'atomic-volume.ts'],
  ['token.ts', 'deadline.ts', 'outcome.ts'],
  [
    'read-token.ts',
    'fetch-with-token.ts',
    'token-refresher/alarm.ts',
    'token-refresher/delivery.ts',
    'token-refresher/lease.ts',
    'token-refresher/schedule.ts',
  ],
  ['token-refresher/mint.ts', 'token-refresher/refresher-status.ts'],
  ['token-refresher/next-attempt.ts', 'token-refresher/record.ts'],
  [
    'tree-walk/draft.ts',
    'link-chain.ts',
    'mount-table.ts',
    'backends/inotify-probe.ts',
    'backends/tree-coverage.ts',
  ],
  ['backends/parcel-watch.ts', 'tree-walk/tree-part.ts'],
  ['backends/'],
  ['locality.ts', 'snapshot.ts', 'tree-walk.ts'],
  ['sighting.ts'],
  ['file-reading.ts'],
  ['targets/read-limits.ts'],
  ['targets/directory-look.ts', 'targets/tree-files.ts'],
  ['targets/path-target.ts'],
  ['targets/group-target.ts', 'targets/tree-target.ts'],
  ['targets/target.ts'],
  [
    'resilient-watcher/watcher-options.ts',
    'resilient-watcher/watcher-status.ts',
    'resilient-watcher/latest.ts',
    'resilient-watcher/change.ts',
    'resilient-watcher/shared-turn.ts',
    'resilient-watcher/backstop.ts',
    'resilient-watcher/writes.ts',
  ],
  [
    'resilient-watcher/backend-choice.ts',
    'resilient-watcher/look-loop.ts',
    'resilient-watcher/observer.ts',
    'resilient-watcher/mount-examination.ts',
  ],
  ['read-target.ts'],
  ['read-volume.ts'],
  ['resilient-watcher/connection.ts', 'resilient-watcher/patience.ts'],
  ['resilient-watcher/doubts.ts'],
  ['resilient-watcher/reporter.ts'],
  ['resilient-watcher/look.ts'],
  ['resilient-watcher.ts'],
  ['token-watch.ts'],
  ['token-refresher/refresher-options.ts'],
  ['token-file.ts', 'token-refresher.ts', 'file-sink.ts'],
  [
    'config/config-value.ts',
    'config/config-provider.ts',
    'config/optional-package.ts',
    'config/redaction.ts',
    'config/standard-schema.ts',
    'config/config-loader/loader-status.ts',
    'config/config-loader/source-problems.ts',
  ],
  ['config/difference.ts', 'config/freeze.ts', 'config/merge.ts', 'config/parser.ts', 'config/put-value.ts'],
  ['config/watched-provider.ts'],
  [
    'config/dotenv-parser.ts',
    'config/environment.ts',
    'config/file-provider.ts',
    'config/json-reader.ts',
    'config/toml-parser.ts',
    'config/volume-provider.ts',
    'config/yaml-parser.ts',
    'config/config-loader/layers.ts',
  ],
  ['config/config-source.ts', 'config/json-parser.ts', 'config/config-loader/validation.ts'],
  ['config/config-loader/loader-options.ts', 'config/config-loader/source-set.ts'],
  ['config/config-loader.ts'],
  ['kubernetes/csi-tokens.ts', 'kubernetes/kubeconfig.ts', 'kubernetes/api-failure.ts'],
  ['kubernetes/cluster-access.ts'],
  [
    'kubernetes/kubeconfig-sink.ts',
    'kubernetes/token-file-auth.ts',
    'kubernetes/token-request-client.ts',
    'kubernetes/volume-publisher.ts',
  ],
  [
    'testing/mint-test-token.ts',
    'testing/kubelet-volume/volume-file.ts',
    'testing/local-api-server/api-answer.ts',
    'testing/local-api-server/request-body.ts',
  ],
  ['testing/local-api-server/server-certificates.ts', 'testing/local-api-server/token-authority.ts'],
  ['testing/local-api-server/service-account-api.ts'],
  ['testing/'],
  ['index.ts', 'config.ts', 'kubernetes.ts', 'testing.ts'],
];

/** `testing/` sees the ports (and the errors that go with them) only, so that a fake cannot inherit a fault of the code it tests. */
const onlyPorts = ['testing/'];

/** Time and chance have one door. */
const doors = ['setTimeout', 'setInterval', 'Date.now', 'performance.now', 'Math.random'];

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

function layerOf(file: string): number {
  return layers.findIndex((layer) =>
    layer.some((name) => (name.endsWith('/') ? file.startsWith(name) : file === name)),
  );
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), 'utf8');
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(
    (match) => match[1] ?? '',
  );
  return specifiers.map((specifier) =>
    relative(src, resolve(src, dirname(file), specifier)).replace(/\.js$/, '.ts'),
  );
}

test('every source file has a layer', () => {
  expect(files.filter((file) => layerOf(file) < 0)).toEqual([]);
});

test.each(files)('%s imports only from layers below its own', (file) => {
  const wrong = importsOf(file).filter((imported) => layerOf(imported) >= layerOf(file));
  expect(wrong).toEqual([]);
});

test.each(files.filter((file) => onlyPorts.some((folder) => file.startsWith(folder))))(
  '%s imports only the ports',
  (file) => {
    const allowed = ['ports.ts', 'errors.ts', 'testing/'];
    const isAllowed = (imported: string): boolean => allowed.some((name) => imported.startsWith(name));
    expect(importsOf(file).filter((imported) => !isAllowed(imported))).toEqual([]);
  },
);

test.each(files.filter((file) => file !== 'ports.ts'))('%s leaves time and chance to the ports', (file) => {
  const code = readFileSync(join(src, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  expect(doors.filter((door) => new RegExp(`\\b${door.replace('.', '\\.')}\\b`).test(code))).toEqual([]);
});
