/** The entry point "resilient-watcher/config". The parsers load their packages on first use. */
import './index.js';

export { ConfigLoader } from './config/config-loader.js';
export type { ConfigChange, ConfigLoaderEvents, ConfigRejection } from './config/loader-events.js';
export type { ConfigLoaderOptions } from './config/loader-options.js';
export type { ConfigLoaderStatus } from './config/loader-status.js';
export type { ConfigTrial } from './config/trial.js';
export type { ConfigValidator, StandardSchema } from './config/validation.js';
export type { ConfigProvider, ProviderCallback, ProviderHealth } from './config/config-provider.js';
export type { ArgumentOptions } from './config/arguments.js';
export type { ConfigKey } from './config/config-description.js';
export type { ConfigSource } from './config/config-source.js';
export type { ConfigMap } from './config/config-value.js';
export { DirectoryProvider, type DirectoryProviderOptions } from './config/directory-provider.js';
export { dotenvParser } from './config/dotenv-parser.js';
export { FileProvider, type FileProviderOptions } from './config/file-provider.js';
export { jsoncParser, jsonParser } from './config/json-parser.js';
export { nodeEnvFiles, type NodeEnvFilesOptions } from './config/node-env-files.js';
export type { ConfigParser, ParseOptions } from './config/parser.js';
export type { ConfigWarning } from './config/places.js';
export type { SelectOptions } from './config/selection.js';
export { tomlParser } from './config/toml-parser.js';
export { VolumeProvider, type VolumeProviderOptions } from './config/volume-provider.js';
export { yamlParser } from './config/yaml-parser.js';
export { ConfigError, type ConfigProblem } from './config/config-error.js';
