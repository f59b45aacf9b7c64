import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

import { describe, expect, test } from 'vitest';

import { packages, root } from '../packages/packages.mjs';

const src = join(root, 'src');
/** The sources of the library and of the packages. */
const SOURCES = packages.map(({ folder, manifest }) => [manifest.name, join(root, folder, 'src')] as const);

/** Which folders each folder may import from. The files in `src` itself are the entry points. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  fs: ['core'],
  watch: ['core', 'fs'],
  write: ['core', 'fs'],
  token: ['core', 'fs', 'watch', 'write'],
  secret: ['core', 'fs', 'watch'],
  config: ['core', 'fs', 'watch'],
  kubernetes: ['core', 'fs', 'write', 'token'],
  telemetry: ['core'],
  tls: ['core', 'fs', 'watch'],
  // A fake must not inherit a fault of the code it tests: of `fs` it shares the names of a volume only.
  testing: ['core', 'fs/volume-layout.ts'],
};

/** What is in `core`: a file below the rooms, and the rooms. Each may import from those before it. */
const ROOMS = ['process-state.ts', 'ports', 'options', 'errors', 'scheduling', 'telemetry', 'lifecycle'];

/**
 * What stands for more than one object, but only for one copy of the library: several copies may have one each. All other
 * such state is in `core/process-state.ts`.
 */
const OF_A_COPY: Readonly<Record<string, string>> = {
  // What is found again if it is lost:
  'config/json-schema.ts schemas': 'that of each validator',
  'core/options/options.ts defaults': 'those of each table of options',
  'fs/disk.ts forms': 'the calls of each fs',
  'fs/disk.ts shared': 'answers of one turn',
  'fs/mounts.ts known': 'the mount table of each fs, as this copy understands it',
  'fs/resolve.ts reachedDirectories': 'answers of one turn',
  'tls/sni-callback.ts contexts': 'contexts of sets of this copy',
  'write/calls.ts known': 'the calls of each fs',
  'write/held-directory.ts reachableByDescriptor': 'whether /proc leads to the files of an fs',
  'write/sweep.ts swept': 'which directories were swept: two copies sweep twice an hour',
  'write/sweep.ts intervalBegan': 'the same',
  'local-api-server/server-certificates.ts first': 'certificates of tests',
  // What several copies can count or order each for itself:
  'core/lifecycle/component.ts repeatedBy': 'parts, which an owner creates itself',
  'core/scheduling/abort.ts callbacks': 'each copy has a listener of its own on a signal',
  'core/telemetry/telemetry.ts operations': 'channels, which Node.js has once for each name',
  'core/telemetry/telemetry.ts points': 'channels, which Node.js has once for each name',
  'watch/ticker.ts tickers': 'each copy has a timer for the same interval',
  'watch/turns.ts waiting': 'looks of this copy; the budget of the turn is shared',
  'watch/turns.ts isScheduled': 'the same',
  'channel-credentials.ts isSubscribed': 'each copy finds the connections of its own channels',
  // Programs:
  'arguments.ts collecting': 'commands of one call of main()',
  'requirement.ts known': 'the suite',
  // A pointer into `core/process-state.ts`:
  'watch/backends/parcel-watch.ts native': 'the state of the module that this copy has loaded',
};

/** Time, turns of the event loop, chance and the paths of the platform have one seam each. */
const SEAMS: Readonly<Record<string, readonly string[]>> = {
  'core/ports/clock.ts': ['setTimeout', 'setInterval', 'Date.now', 'new Date', 'performance.now'],
  'core/scheduling/event-loop.ts': ['setImmediate'],
  'core/ports/random.ts': ['Math.random'],
  'core/ports/platform-path.ts': ['win32', 'sep', "'\\\\'"],
};
const SEALED = [...Object.values(SEAMS).flat(), 'AbortSignal.timeout', 'node:timers'];

const files = filesOf(src);
const imports = importsIn(src);

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(sep).join('/'))
    .filter((file) => file.endsWith('.ts'));
}

function importsIn(folder: string): ReadonlyMap<string, readonly string[]> {
  return new Map(filesOf(folder).map((file) => [file, importsOf(folder, file)]));
}

function importsOf(folder: string, file: string): string[] {
  const text = readFileSync(join(folder, file), 'utf8');
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(
    (match) => match[1] ?? '',
  );
  return specifiers.map((specifier) =>
    relative(folder, resolve(folder, dirname(file), specifier))
      .split(sep)
      .join('/')
      .replace(/\.js$/, '.ts'),
  );
}

/** A file without comments. */
function codeOf(folder: string, file: string): string {
  return readFileSync(join(folder, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
}

function folderOf(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : '';
}

describe('the source tree', () => {
  test('has entry points only in its root, and they only re-export', () => {
    const entryPoints = files.filter((file) => folderOf(file) === '');
    const withCode = entryPoints.filter((file) =>
      readFileSync(join(src, file), 'utf8')
        .replace(/\/\*[\s\S]*?\*\//g, '')
        .replace("import './index.js';", '')
        .split(';')
        .some((statement) => statement.trim() !== '' && !statement.trim().startsWith('export ')),
    );
    expect(withCode).toEqual([]);
  });

  test('imports downwards only, folder by folder', () => {
    expect([...new Set(files.map(folderOf))].sort()).toEqual(['', ...Object.keys(MAY_IMPORT)].sort());
    const wrong = files.flatMap((file) => {
      const folder = folderOf(file);
      if (folder === '') return [];
      const allowed = [folder, ...(MAY_IMPORT[folder] ?? [])];
      const isAllowed = (imported: string): boolean =>
        allowed.includes(folderOf(imported)) || allowed.includes(imported);
      return (imports.get(file) ?? [])
        .filter((imported) => !isAllowed(imported))
        .map((imported) => `${file} imports ${imported}`);
    });
    expect(wrong).toEqual([]);
  });

  test('has rooms in core that import downwards only', () => {
    const roomOf = (file: string): number => ROOMS.indexOf(file.split('/')[1] ?? '');
    const inCore = files.filter((file) => folderOf(file) === 'core');
    expect(inCore.filter((file) => roomOf(file) < 0)).toEqual([]);
    const wrong = inCore.flatMap((file) =>
      (imports.get(file) ?? [])
        .filter((imported) => roomOf(imported) > roomOf(file))
        .map((imported) => `${file} imports ${imported}`),
    );
    expect(wrong).toEqual([]);
  });

  test.each(SOURCES)('has no import cycle: %s', (_, folder) => {
    const all = importsIn(folder);
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' -> '));
      else if (!done.has(file)) {
        for (const imported of all.get(file) ?? []) visit(imported, [...path, file]);
        done.add(file);
      }
    };
    for (const file of all.keys()) visit(file, []);
    expect(cycles).toEqual([]);
  });

  test.each(SOURCES)('has no file of more than 300 lines of code: %s', (_, folder) => {
    const tooLong = filesOf(folder)
      .map((file) => ({
        file,
        lines: codeOf(folder, file)
          .split('\n')
          .filter((line) => line.trim() !== '').length,
      }))
      .filter(({ lines }) => lines > 300);
    expect(tooLong).toEqual([]);
  });

  test('keeps state of the process in one file', () => {
    const stateful = SOURCES.flatMap(([, folder]) =>
      filesOf(folder).flatMap((file) => {
        const code = codeOf(folder, file);
        // Without arguments, because what is created from a list is a constant.
        const declared = code.matchAll(
          /^(?:export )?(?:let (\w+)|const (\w+)(?:: [^=]+)? = new \w+(?:<.*>)?\(\))/gm,
        );
        return [...declared].map(([, variable, constant]) => `${file} ${variable ?? constant}`);
      }),
    );
    const constants = stateful.filter((name) => / NO(THING)?(_[A-Z]+)?$/.test(name));
    expect(stateful.filter((name) => !constants.includes(name)).sort()).toEqual(
      Object.keys(OF_A_COPY).sort(),
    );
    const shared = SOURCES.flatMap(([, folder]) =>
      filesOf(folder).filter((file) => codeOf(folder, file).includes('Symbol.for')),
    );
    // The second one uses those of undici.
    expect(shared).toEqual(['core/process-state.ts', 'tls/default-pools.ts']);
  });

  test('leaves time, chance and the paths of Windows to their seams', () => {
    // The conformance suite depends on nothing, those seams included.
    const sealed = SOURCES.filter(([name]) => name !== 'watch-conformance');
    const wrong = sealed.flatMap(([name, folder]) =>
      filesOf(folder).flatMap((file) => {
        const code = codeOf(folder, file);
        const own = folder === src ? (SEAMS[file] ?? []) : [];
        return SEALED.filter(
          (sealed) =>
            !own.includes(sealed) &&
            new RegExp(`(?<!\\w)${sealed.replaceAll(/[.\\]/g, '\\$&')}(?!\\w)`).test(code),
        ).map((sealed) => `${name}: ${file} uses ${sealed}`);
      }),
    );
    expect(wrong).toEqual([]);
  });
});

test('node:buffer, node:fs and node:util are imported by one file, which says why', () => {
  const wrong = files.filter(
    (file) =>
      file !== 'core/ports/builtins.ts' &&
      // What a test uses is not loaded by a program.
      !file.startsWith('testing/') &&
      /import (?!type)[^;]*'node:(buffer|fs|util)'/.test(codeOf(src, file)),
  );
  expect(wrong).toEqual([]);
});

test('what a platform lacks is not imported by name, which would end a program there before its first line', () => {
  const LACKING = /^([gs]et(e?[ug]id|groups)|initgroups|execve)$/;
  const wrong = SOURCES.flatMap(([name, folder]) =>
    filesOf(folder).flatMap((file) =>
      [...codeOf(folder, file).matchAll(/import\s*\{([^}]*)\}\s*from\s*'(?:node:)?(?:process|os)'/g)]
        .flatMap(([, names = '']) => names.split(',').map((each) => each.trim().split(' ')[0] ?? ''))
        .filter((imported) => LACKING.test(imported))
        .map((imported) => `${name}: ${file} imports ${imported}`),
    ),
  );
  expect(wrong).toEqual([]);
});

describe('the packages', () => {
  const others = packages.slice(1);
  /** What a file imports, with the names, if it gives any. */
  const importedBy = (folder: string): { readonly from: string; readonly names: readonly string[] }[] =>
    filesOf(folder).flatMap((file) =>
      [
        ...codeOf(folder, file).matchAll(
          /(?:import|export)\s+(?:type\s+)?(?:\{([^}]*)\}|[^'"{;]*)\s*from\s*'([^']+)'|import\s*\(?\s*'([^']+)'/g,
        ),
      ].map(([, names = '', from = '', dynamic = from]) => ({
        from: dynamic.startsWith('.') ? resolve(folder, dirname(file), dynamic) : dynamic,
        names: names
          .split(',')
          .map((name) => name.replace(/^\s*type\s|\sas\s.*$/g, '').trim())
          .filter(Boolean),
      })),
    );

  test.each(
    others.map(({ manifest, folder }) => [manifest.name, manifest, join(root, folder, 'src')] as const),
  )(
    '%s imports itself, what it depends on, and nothing else, not even files of the library',
    (_, { dependencies, peerDependencies }, folder) => {
      const allowed = Object.keys({ ...dependencies, ...peerDependencies });
      const isAllowed = (from: string): boolean =>
        from.startsWith('node:') ||
        from.startsWith(folder + sep) ||
        allowed.some((name) => from === name || from.startsWith(`${name}/`));
      expect(importedBy(folder).filter(({ from }) => !isAllowed(from))).toEqual([]);
    },
  );

  test('of gRPC have the tests of gRPC: those of the library do without it', () => {
    const wrong = filesOf(join(root, 'test')).filter(
      (file) =>
        // Those of the tarballs install it.
        !file.startsWith('package/') &&
        /from '(@grpc\/grpc-js|@resilient-watcher\/grpc)'/.test(codeOf(join(root, 'test'), file)),
    );
    expect(wrong).toEqual([]);
  });

  test('depend on each other and on the library at exactly this version', () => {
    const own = new Map(packages.map(({ manifest }) => [manifest.name, manifest.version]));
    const wrong = packages.flatMap(({ manifest }) =>
      Object.entries({
        ...manifest.dependencies,
        ...manifest.devDependencies,
        ...manifest.peerDependencies,
      })
        .filter(([name, range]) => own.has(name) && own.get(name) !== range)
        .map(([name, range]) => `${manifest.name} needs ${name}@${range}`),
    );
    expect(new Set(own.values()).size).toBe(1);
    expect(wrong).toEqual([]);
  });

  test('share resilient-watcher/internal, which has at most 60 names, and none that nobody uses', () => {
    const text = codeOf(src, 'internal.ts');
    const names = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, list = '']) =>
      list
        .split(',')
        .map((name) => name.replace(/^\s*type\s/, '').trim())
        .filter(Boolean),
    );
    const users = new Map(
      names.map((name) => [
        name,
        others
          .filter(({ folder }) =>
            importedBy(join(root, folder, 'src')).some(
              ({ from, names: used }) => from === 'resilient-watcher/internal' && used.includes(name),
            ),
          )
          .map(({ manifest }) => manifest.name),
      ]),
    );
    console.log([...users].map(([name, by]) => `${name}: ${by.join(', ')}`).join('\n'));
    expect([...users].filter(([, by]) => by.length === 0)).toEqual([]);
    expect(names.length).toBeLessThanOrEqual(60);
  });
});
