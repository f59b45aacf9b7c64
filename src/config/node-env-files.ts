import { format, parse } from 'node:path';

import { checkPath, describe } from '../core/options/options.js';
import type { ProviderSource } from './config-source.js';
import { FileProvider, type FileProviderOptions } from './file-provider.js';

/** Options of `nodeEnvFiles`, including those of `FileProvider`, which both files get. */
export interface NodeEnvFilesOptions extends FileProviderOptions {
  /** The environment. Default: `process.env.NODE_ENV`; if it is not set, only the file itself is used. */
  readonly nodeEnv?: string | undefined;
}

/**
 * The sources for a file and for its variant for the environment, which takes precedence and may be missing: `app.yaml`
 * and `app.production.yaml`, `.env` and `.env.production`. The variant of a file called `default` has the name of the
 * environment only, as in node-config: `default.json` and `production.json`. Of several environments
 * (`NODE_ENV=eu,canary`), the later one takes precedence.
 *
 *     sources: [...nodeEnvFiles('/etc/app/app.yaml'), { env: { prefix: 'APP_' } }]
 *
 * Does no I/O.
 * @throws {TypeError | RangeError} for an invalid path or option, or an environment that cannot be in a file name.
 */
export function nodeEnvFiles(path: string | URL, options: NodeEnvFilesOptions = {}): ProviderSource[] {
  const { nodeEnv = process.env['NODE_ENV'], ...rest } = options;
  const file = checkPath('nodeEnvFiles', 'path', path);
  const { dir, name, ext } = parse(file);
  const variants = nodeEnv ? nodeEnv.split(',').map((each) => each.trim()) : [];
  const wrong = variants.find((each) => !/^[\w.-]+$/.test(each));
  if (wrong !== undefined) {
    throw new TypeError(`nodeEnvFiles: NODE_ENV must be a part of a file name, got ${describe(wrong)}`);
  }
  return [
    { provider: new FileProvider(file, rest) },
    ...variants.map((each) => {
      const variant = format({ dir, name: name === 'default' ? each : `${name}.${each}`, ext });
      return { provider: new FileProvider(variant, { ...rest, optional: true }) };
    }),
  ];
}
