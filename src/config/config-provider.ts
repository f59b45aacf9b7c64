/** The shape of a provider, as koanf has it. */

/**
 * Where a configuration comes from, and how one hears that it changed. Third parties may implement it; a
 * `ConfigLoader` takes any.
 */
export interface ConfigProvider {
  /** Shown in problems: a path. */
  readonly name: string;
  /** `sha256:…` of what was last read, if the provider knows. */
  readonly digest?: string | undefined;
  /** The values, a map; undefined when there are none and that is fine. */
  read(): Promise<unknown>;
  /** The bytes, for a parser; undefined when there are none and that is fine. */
  readBytes?(): Promise<Uint8Array | undefined>;
  /**
   * Calls back after each change and with each error, never with both. Rejects when it cannot begin; then goes on
   * until `unwatch()`.
   */
  watch?(callback: ProviderCallback): Promise<void>;
  /** Ends watching; harmless when nothing is watched. */
  unwatch?(): Promise<void>;
}

/** Told of a change (`error` is undefined), or of an error (`event` is undefined): information, watching goes on. */
export type ProviderCallback<Event = unknown> = (
  event: Event | undefined,
  error: Error | undefined,
) => unknown;
