/**
 * The part of Standard Schema (version 1) that is used here; zod, valibot, arktype and others implement it.
 * See https://standardschema.dev.
 */
export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The result of a schema: the value to use, or the issues. */
export type SchemaResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/** One problem. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Whether a value is a Standard Schema. The schemas of arktype are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as { readonly '~standard'?: { readonly validate?: unknown } })['~standard'];
  return typeof standard?.validate === 'function';
}
