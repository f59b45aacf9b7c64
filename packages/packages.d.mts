export interface Package {
  /** Relative to the root of the repository, with a slash at its end; empty for the library. */
  readonly folder: string;
  readonly manifest: {
    readonly name: string;
    readonly version: string;
    readonly dependencies?: Readonly<Record<string, string>>;
    readonly devDependencies?: Readonly<Record<string, string>>;
    readonly optionalDependencies?: Readonly<Record<string, string>>;
    readonly peerDependencies?: Readonly<Record<string, string>>;
    readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
  };
  readonly entryPoints: readonly { readonly specifier: string; readonly name: string }[];
}

/** The root of the repository, with a slash at its end. */
export const root: string;
export const packages: readonly Package[];
