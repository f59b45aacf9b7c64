import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';

import { packages, root } from '../../packages/packages.mjs';

/** An entry point that users import, and its reviewed report. */
export interface Reported {
  readonly specifier: string;
  /** Its declarations, relative to the root. */
  readonly declarations: string;
  /** `config.api.md` for `resilient-watcher/config`, `cli-action.api.md` for `@resilient-watcher/cli/action`. */
  readonly report: string;
}

/** The folder of the reviewed reports. */
export const reports = join(root, 'test/package/api');

/** Those of all packages. What is internal is no API. */
export const reported: readonly Reported[] = packages.flatMap(({ folder, entryPoints }) =>
  entryPoints
    .filter(({ specifier }) => specifier !== 'resilient-watcher/internal')
    .map(({ specifier, name }) => ({
      specifier,
      declarations: `${folder}dist/${name}.d.ts`,
      report: `${folder === '' ? name : specifier.replace('@resilient-watcher/', '').replace('/', '-')}.api.md`,
    })),
);

/** What an entry point exports, as api-extractor reports it from the built declarations. */
export function apiReport({ declarations, report }: Reported): string {
  const folder = mkdtempSync(join(tmpdir(), 'resilient-watcher-api-'));
  try {
    const config = ExtractorConfig.prepare({
      configObjectFullPath: join(root, 'api-extractor.json'),
      packageJsonFullPath: join(root, 'package.json'),
      configObject: {
        projectFolder: root,
        newlineKind: 'lf',
        mainEntryPointFilePath: join(root, declarations),
        compiler: {
          overrideTsconfig: {
            compilerOptions: COMPILER_OPTIONS,
            include: [join(dirname(declarations), '*.d.ts')],
          },
        },
        apiReport: {
          enabled: true,
          reportFileName: report,
          reportFolder: folder,
          reportTempFolder: join(folder, 'temp'),
        },
        docModel: { enabled: false },
        dtsRollup: { enabled: false },
        tsdocMetadata: { enabled: false },
        messages: {
          compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
          extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
          tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        },
      },
    });
    Extractor.invoke(config, { localBuild: true, messageCallback: (message) => (message.handled = true) });
    return readFileSync(join(folder, report), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const COMPILER_OPTIONS = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  strict: true,
  skipLibCheck: true,
  types: ['node'],
};
