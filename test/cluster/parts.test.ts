/** The parts of the cluster test that need no cluster: its observers, its table, its objects. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { root } from '../docs/markdown.js';
import { skip } from '../support/namespace.js';
import { Transcript } from '../support/program.js';
import { some } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { csiDaemonSet, csiDriver, csiObserverPod, DRIVER } from './csi.js';
import { deliveryTable, FILES, listeningPod } from './delivery.js';
import { fitted, kustomized, manifestsIn } from './manifests.js';
import { configMap, contentsOf, OBSERVERS, observerPod, secret, UPDATES } from './objects.js';
import { clusterSettings } from './settings.js';
import { linesOf, tableOf, tally } from './tally.js';

const log = (...lines: object[]): string => lines.map((line) => JSON.stringify(line)).join('\n');

describe('the table', () => {
  const rows = tally(
    new Map([
      [
        'all',
        log(
          { who: 'a', at: 1, sequence: 0 },
          { who: 'a', at: 10, sequence: 1 },
          { who: 'a', at: 20, sequence: 2 },
        ),
      ],
      [
        'late',
        log(
          { who: 'b', at: 9, sequence: 0 },
          { who: 'b', at: 15, sequence: 1, afterSwapMs: 0.256 },
          { who: 'b', at: 16, sequence: 1, false: true },
        ),
      ],
      ['dead', log({ who: 'c', at: 3, died: 'EACCES' })],
    ]),
  );

  test('counts seen, missed and false updates, and measures their delay after the first observer', () => {
    const none = {
      seen: 0,
      missed: 0,
      false: 0,
      medianMs: undefined,
      maxMs: undefined,
      medianAfterSwapMs: undefined,
      died: undefined,
    };
    expect(rows).toEqual([
      { ...none, observer: 'all', seen: 3, medianMs: 0, maxMs: 0 },
      {
        ...none,
        observer: 'late',
        seen: 2,
        missed: 1,
        false: 1,
        medianMs: 5,
        maxMs: 5,
        medianAfterSwapMs: 0.256,
      },
      { ...none, observer: 'dead', missed: 3, died: 'EACCES' },
    ]);
  });

  test('is Markdown with a row for each observer', () => {
    expect(tableOf(rows).split('\n')).toHaveLength(5);
    expect(tableOf(rows)).toContain('| late | 2 | 1 | 1 | 5 ms | 5 ms | 0.26 ms |  |');
  });

  test('ignores lines that are not from an observer', () => {
    expect(linesOf('npm warn\n"text"\n{"other":1}\n')).toEqual([]);
  });
});

test('the table of the delivery has the time of each file of each pod, and counts those that never showed it', () => {
  const seen = (who: string, sequence: number, at: number): object => ({ who, sequence, at });
  const [config, projected] = FILES.configmap;
  const pods = [
    log(seen(config, 1, 1_100), seen(projected, 1, 1_200), seen(config, 3, 70_000)),
    log(
      seen(config, 1, 1_300),
      seen(projected, 1, 5_000),
      seen(config, 3, 80_000),
      seen(projected, 3, 80_000),
    ),
  ];
  const configmap = { object: 'configmap' } as const;
  const table = deliveryTable(
    [
      { ...configmap, update: 1, at: 1_000, under: 'with' },
      { ...configmap, update: 3, at: 10_000, under: 'without' },
    ],
    pods,
  );
  expect(table.split('\n').slice(2)).toEqual([
    '| with | 1 | 4 | 0 | 0.20 | 4.00 | 4.00 |',
    '| without | 1 | 3 | 1 | 70.00 | 70.00 | 70.00 |',
  ]);
});

describe('the objects', () => {
  test.each([observerPod('image', 'somewhere'), listeningPod('image', 'listener')])(
    'the pod has each volume that a container mounts',
    ({ spec }) => {
      const volumes = spec?.volumes?.map(({ name }) => name) ?? [];
      const mounted =
        spec?.containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)) ?? [];
      expect(mounted.filter((name) => !volumes.includes(name))).toEqual([]);
    },
  );

  test('containers have distinct names that Kubernetes accepts', () => {
    const names = observerPod('image', 'somewhere').spec?.containers.map(({ name }) => name) ?? [];
    expect(names.filter((name) => !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))).toEqual([]);
    expect(new Set(names).size).toBe(OBSERVERS.length + 1);
  });

  test('each update differs from the previous one', () => {
    for (let update = 1; update <= UPDATES; update += 1) {
      expect(configMap(update).data).not.toEqual(configMap(update - 1).data);
    }
  });

  test('an object that is written again differs in its labels only', () => {
    for (const make of [configMap, secret]) {
      const { metadata, ...rest } = make(7);
      const { metadata: rewritten, ...same } = make(7, { rewritten: '7' });
      expect(same).toEqual(rest);
      expect(rewritten).not.toEqual(metadata);
    }
  });

  test('the CSI driver, its registrar and the pod that has its volume agree on name, paths and token', () => {
    const example = readFileSync(join(root, 'examples/csi-driver/main.mjs'), 'utf8');
    expect(example).toContain(`name: '${DRIVER}'`);
    expect(example).toContain(`AUDIENCE: audience = '${csiDriver.spec.tokenRequests?.[0]?.audience}'`);
    const { containers = [], volumes = [] } = csiDaemonSet('image', 'registrar').spec?.template.spec ?? {};
    const names = volumes.map(({ name }) => name);
    const mounted = containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name));
    expect(new Set(mounted)).toEqual(new Set(names));
    const [plugin] = volumes.filter(({ name }) => name === 'plugin');
    const registrar = containers.find(({ name }) => name === 'registrar');
    expect(registrar?.args).toContain(`--kubelet-registration-path=${plugin?.hostPath?.path}/csi.sock`);
    expect(csiObserverPod('image', 'somewhere').spec?.volumes?.[0]?.csi?.driver).toBe(DRIVER);
  });

  test('the image contains the programs and their imports', () => {
    const read = (path: string): string => readFileSync(join(root, path), 'utf8');
    const programs = ['observe', 'provider', 'certificates', 'server'].map(
      (name) => `test/cluster/program/${name}.mjs`,
    );
    const program = [...programs, 'examples/csi-driver/main.mjs'].map(read).join('\n');
    const dockerfile = read('test/cluster/Dockerfile');
    for (const path of programs) expect(dockerfile).toContain(path);
    const imported = [...program.matchAll(/(?:from |import\()'([^'./][^':]*)'/g)].map(([, name = '']) =>
      name.startsWith('@') ? name : (name.split('/')[0] ?? ''),
    );
    expect(imported.filter((name) => !dockerfile.includes(name))).toEqual([]);
  });

  test('.dockerignore excludes nothing that its image copies', () => {
    const linesOfFile = (file: string): string[] => readFileSync(join(root, file), 'utf8').split('\n');
    const sent = linesOfFile('.dockerignore').flatMap((line) =>
      line.startsWith('!') ? [line.slice(1)] : [],
    );
    const copied = (file: string): string[] =>
      linesOfFile(file)
        .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
        .flatMap((line) => line.split(/\s+/).slice(1, -1));
    const own = copied('test/cluster/Dockerfile');
    expect(own).not.toEqual([]);
    expect(own.filter((source) => !sent.some((entry) => `${source}/`.startsWith(`${entry}/`)))).toEqual([]);
    // The published image takes the package from the registry.
    expect(copied('Dockerfile')).toEqual([]);
  });
});

describe('the manifests of deploy/ are applied unchanged, except for', () => {
  const settings = { image: 'e2e:test', hostNetwork: false, hostPath: false };
  const images = { nginx: undefined, prometheus: 'prometheus:own' };

  /** The paths of the fields that differ in the manifests of a file once they are fitted. */
  function changed(file: string, allowed = {}): string[] {
    const paths = manifestsIn(file).flatMap((manifest) =>
      differences(manifest, fitted(manifest, 'e2e-1', { ...settings, ...images, ...allowed })),
    );
    return [...new Set(paths)].map((path) => path.replace('/spec/template/spec/', 'pod/'));
  }

  test.each([
    ['nginx-sidecar.yaml', ['pod/initContainers/0/image']],
    ['webhook-sidecar.yaml', ['pod/initContainers/0/image', 'pod/containers/0/image']],
    ['run-as-pid-1.yaml', ['pod/initContainers/0/image', 'pod/containers/0/image']],
    ['service-monitor.yaml', []],
    ['pod-certificate.yaml', ['pod/containers/0/image']],
  ])('namespace and images: %s', (file, paths) => {
    expect(changed(file).sort()).toEqual(['/metadata/namespace', ...paths].sort());
  });

  test('access of the CNI plugin to its node, unless it is allowed', () => {
    const own = ['/metadata/namespace', '/subjects/0/namespace', 'pod/containers/0/image'];
    // The ServiceAccount whose tokens it requests.
    own.push('pod/containers/0/args/4');
    const host = ['pod/hostNetwork', 'pod/volumes/0/hostPath', 'pod/volumes/0/emptyDir'];
    expect(changed('cni-kubeconfig.yaml').sort()).toEqual([...own, ...host].sort());
    // Never the directory of the real plugins.
    const volume = ['pod/volumes/0/hostPath/path', 'pod/volumes/0/hostPath/type'];
    const allowed = { hostNetwork: true, hostPath: true };
    expect(changed('cni-kubeconfig.yaml', allowed).sort()).toEqual([...own, ...volume].sort());
  });

  test('an image without a setting is refused', () => {
    const pod = { containers: [{ name: 'other', image: 'other:1' }] };
    const manifest = { kind: 'Deployment', metadata: { name: 'x' }, spec: { template: { spec: pod } } };
    expect(() => fitted(manifest, 'e2e-1', { ...settings, ...images })).toThrow('The image other:1 is not');
  });

  test('nothing: the Kustomize base, where it can be built', (context) => {
    const built = kustomized();
    if (!built) return skip(context, 'neither kubectl nor kustomize is on the PATH');
    expect(built.map(({ kind }) => kind).sort()).toEqual(['ConfigMap', 'Deployment', 'Service']);
  });
});

/** The paths of the fields in which two values differ. */
function differences(one: unknown, other: unknown, path = ''): string[] {
  if (isDeepStrictEqual(one, other)) return [];
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return [path];
  const [left, right] = [new Map(Object.entries(one)), new Map(Object.entries(other))];
  return [...new Set([...left.keys(), ...right.keys()])].flatMap((key) =>
    differences(left.get(key), right.get(key), `${path}/${key}`),
  );
}

test('the provider of the CSI driver returns the current file to every caller with a token', async () => {
  const file = join(temporaryDirectory(), 'app.yaml');
  const child = spawn(process.execPath, [join(root, 'test/cluster/program/provider.mjs')], {
    env: { ...process.env, FILE: file, PORT: '0' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { port } = JSON.parse(String(line)) as { port: number };
  const ask = (headers = {}): Promise<Response> => fetch(`http://127.0.0.1:${port}/`, { headers });
  const authorization = 'Bearer token';
  expect((await ask()).status).toBe(401);
  expect((await ask({ authorization })).status).toBe(503);
  writeFileSync(file, 'update: 3\n');
  expect(await (await ask({ authorization })).json()).toEqual({ files: { 'app.yaml': 'update: 3\n' } });
});

test('without a cluster the reason is printed', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  expect(clusterSettings({})).toBeUndefined();
  expect(warn).toHaveBeenCalledWith('Skipped: no cluster: KUBECONFIG is not set');
  warn.mockRestore();
});

describe('the observers', () => {
  const program = join(root, 'test/cluster/program/observe.mjs');

  function observe(who: string, target: string): Transcript {
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, OBSERVE: who, TARGET: target },
    });
    const closed = new Promise((resolve) => child.on('close', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await closed;
    });
    return new Transcript(child);
  }

  function volumeOf(update: number): KubeletVolume {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish(contentsOf(update));
    return volume;
  }

  const observers = ['library', 'chokidar', 'group', 'fs.watch-directory', 'loader', 'chokidar-directory'];

  test.each(some(observers, 3))('%s prints the number of each update that it sees', async (who) => {
    const volume = volumeOf(0);
    const path = volume.path('app.yaml');
    const transcript = observe(who, who === 'group' ? `${path},${volumeOf(0).path('app.yaml')}` : path);
    await transcript.until({ sequence: 0 });
    await transcript.until({ ready: true });
    volume.publish(contentsOf(1));
    await transcript.until({ sequence: 1 });
  });

  test('the two volumes of a group may change one after the other, and both count as seen', async () => {
    const [config, secret] = [volumeOf(0), volumeOf(0)];
    const paths = [config, secret].map((volume) => volume.path('app.yaml'));
    const transcript = observe('group', paths.join(','));
    await transcript.until({ ready: true });
    for (const volume of [config, secret]) {
      const before = transcript.events.length;
      volume.publish(contentsOf(1));
      await expect.poll(() => transcript.events.length).toBeGreaterThan(before);
    }
    expect(transcript.events.filter((line) => line['false'])).toEqual([]);
  });

  test('each prints the path and the number for every file', async () => {
    const [config, secret] = [volumeOf(3), volumeOf(4)];
    const paths = [config, secret].map((volume) => volume.path('app.yaml'));
    const transcript = observe('each', paths.join(','));
    await transcript.until({ ready: true });
    config.publish(contentsOf(5));
    await transcript.until({ who: paths[0], sequence: 5 });
    secret.publish(contentsOf(6));
    await transcript.until({ who: paths[1], sequence: 6 });
  });

  test('the loader prints that it rejects a bad configuration, and no number', async () => {
    const volume = volumeOf(9);
    const transcript = observe('loader', volume.path('app.yaml'));
    await transcript.until({ ready: true });
    volume.publish(contentsOf(10));
    await transcript.until({ rejected: true });
    expect(transcript.events.filter(({ sequence }) => sequence === 10)).toEqual([]);
  });

  test('the token file prints that the token has changed, but not the token', async () => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish({ token: mintTestToken({ jti: 'first' }) });
    const transcript = observe('token', volume.path('token'));
    await transcript.until({ token: true });
    expect(JSON.stringify(transcript.events)).not.toContain('eyJ');
  });
});
