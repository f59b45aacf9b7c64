/** The entry point "resilient-watcher/config". `yaml`, `smol-toml` and `dotenv` are loaded when they are first used. */
export { ConfigLoader, type SelectOptions } from './config/config-loader.js';
export type { ConfigChange, ConfigLoaderEvents, ConfigRejection, OfSource } from './config/loader-events.js';
export type { ConfigLoaderOptions } from './config/loader-options.js';
export type { ConfigLoaderStatus, ConfigSourceStatus } from './config/loader-status.js';
export type { ConfigValidator } from './config/validation.js';
export type { ConfigProvider, ProviderCallback, ProviderHealth } from './config/config-provider.js';
export type {
  ConfigSource,
  EnvironmentSource,
  ProviderSource,
  ValuesSource,
} from './config/config-source.js';
export type { ConfigMap, ConfigValue } from './config/config-value.js';
export { dotenvParser } from './config/dotenv-parser.js';
export type { EnvironmentOptions } from './config/environment.js';
export { FileProvider, type FileProviderOptions } from './config/file-provider.js';
export { jsonParser } from './config/json-parser.js';
export type { ConfigParser } from './config/parser.js';
export type { SchemaIssue, SchemaResult, StandardSchema } from './config/standard-schema.js';
export { tomlParser } from './config/toml-parser.js';
export { VolumeProvider, type VolumeProviderOptions } from './config/volume-provider.js';
export { yamlParser } from './config/yaml-parser.js';
export { ConfigError, type ConfigErrorCode, type ConfigProblem } from './config/config-error.js';
export { ClosedError } from './core/errors.js';
