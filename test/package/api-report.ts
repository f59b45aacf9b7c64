import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Where the reviewed report of an entry point is. */
export function reportPath(entryPoint: string): string {
  return fileURLToPath(new URL(`api/${fileName(entryPoint)}.api.md`, import.meta.url));
}

/** What an entry point exports, as api-extractor reports it from the built declarations. */
export function apiReport(entryPoint: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'resilient-watcher-api-'));
  try {
    const config = ExtractorConfig.prepare({
      configObjectFullPath: join(root, 'api-extractor.json'),
      packageJsonFullPath: join(root, 'package.json'),
      configObject: {
        projectFolder: root,
        newlineKind: 'lf',
        mainEntryPointFilePath: join(root, `dist/${moduleName(entryPoint)}.d.ts`),
        compiler: { overrideTsconfig: { compilerOptions: COMPILER_OPTIONS, include: ['dist/*.d.ts'] } },
        apiReport: {
          enabled: true,
          reportFileName: `${fileName(entryPoint)}.api.md`,
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
    return readFileSync(join(folder, `${fileName(entryPoint)}.api.md`), 'utf8');
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

/** `resilient-watcher/config` → `config`. */
function moduleName(entryPoint: string): string {
  const [, name = 'index'] = /^resilient-watcher(?:\/(.+))?$/.exec(entryPoint) ?? [];
  return name;
}

function fileName(entryPoint: string): string {
  return moduleName(entryPoint).replaceAll('/', '-');
}
