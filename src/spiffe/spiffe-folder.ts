import { absolutePath, within } from '../fs/absolute-path.js';
import { checkPath, divideOptions } from '../core/options.js';
import type { Snapshot } from '../fs/snapshot.js';
import { parseCertificates } from '../tls/certificates.js';
import { TlsCredentials, type TlsCredentialsFields } from '../tls/tls-credentials.js';
import { TlsError } from '../tls/tls-error.js';
import { bytesOf, identityOf, mustBeUsable } from '../tls/tls-files.js';
import type { TlsPlace } from '../tls/tls-paths.js';
import { digestOfSet, distinct } from '../tls/trust.js';
import {
  CREDENTIALS_OPTIONS,
  WatchedCredentials,
  type CredentialsEvents,
  type CredentialsOptions,
  type CredentialsStatus,
} from '../tls/watched-credentials.js';
import { VALUE_OPTION_NAMES } from '../watch/watched-value.js';
import { isTrustDomain, spiffeIdIn, type SpiffeId } from './spiffe-id.js';
import type { TrustBundles } from './verify-peer.js';

const CREDENTIALS = 'credential-bundle.private-key.x509.pem';
const TRUST_BUNDLE = '.spiffe-trust-bundle.x509.pem';

/** A checked identity and its trust bundles. Printed forms show the subject and the dates, never the key. */
export class SpiffeCredentials extends TlsCredentials {
  /** The SPIFFE ID of this process. */
  readonly id: SpiffeId;
  /** The trust bundles, by trust domain. They must never be merged. */
  readonly bundles: TrustBundles;

  readonly #fields: TlsCredentialsFields;

  /** @internal */
  constructor(id: SpiffeId, bundles: TrustBundles, fields: TlsCredentialsFields) {
    const trust = [...bundles].map(([domain, authorities]) => `${domain}=${digestOfSet(authorities)}`);
    super({ ...fields, distinction: trust.sort().join() });
    this.id = id;
    this.bundles = bundles;
    this.#fields = fields;
  }

  /** The same identity with other trust bundles. @internal */
  withBundles(bundles: TrustBundles): SpiffeCredentials {
    return new SpiffeCredentials(this.id, bundles, this.#fields);
  }
}

/**
 * Options of `spiffeFolder`. All are optional, and `undefined` means the default.
 * @example
 * ```ts
 * const options: SpiffeFolderOptions = { expiryWarningMs: 600_000 }; // 10 minutes
 * const folder = spiffeFolder('/run/workload-spiffe-credentials', options);
 * ```
 */
export type SpiffeFolderOptions = CredentialsOptions;

/** Events of `SpiffeFolder`. No event's string, JSON or `inspect` form contains a key. */
export type SpiffeFolderEvents = CredentialsEvents<SpiffeCredentials>;

/** The status of `SpiffeFolder`. Plain data without keys; times are epoch ms. */
export interface SpiffeFolderStatus extends CredentialsStatus {
  /** The SPIFFE ID of this process; null before the first identity. */
  readonly id: string | null;
  /** The trust domains with a bundle. */
  readonly trustDomains: readonly string[];
}

/** A watched SPIFFE credential folder; created by `spiffeFolder()`. */
export class SpiffeFolder extends WatchedCredentials<
  SpiffeCredentials,
  SpiffeFolderEvents,
  SpiffeFolderStatus
> {
  constructor(directory: string | URL, options?: SpiffeFolderOptions) {
    const path = absolutePath(checkPath('spiffeFolder', 'directory', directory));
    const { own, rest } = divideOptions('spiffeFolder', options, CREDENTIALS_OPTIONS, VALUE_OPTION_NAMES);
    super({ kind: 'SpiffeFolder', path, ...own, options: rest });
  }

  status(): SpiffeFolderStatus {
    const { current } = this;
    return {
      ...this.credentialsStatus(),
      id: current?.id.uri ?? null,
      trustDomains: [...(current?.bundles.keys() ?? [])],
    };
  }

  protected get certificatePath(): string {
    return this.path;
  }

  /** An identity that cannot be used does not prevent the removal of a bundle from taking effect. */
  protected override take(snapshot: Snapshot): void {
    const { current } = this;
    super.take(snapshot);
    // Only its bundles were used: now it is rejected.
    if (this.current !== current && this.current?.cert === current?.cert) super.take(snapshot);
  }

  protected parse(snapshot: Snapshot): SpiffeCredentials {
    const bundles = this.#bundlesIn(snapshot);
    try {
      return this.#credentialsIn(snapshot, bundles);
    } catch (error) {
      const trusting = this.current?.withBundles(bundles);
      if (!trusting || trusting.equals(this.current)) throw error;
      return trusting;
    }
  }

  #credentialsIn(snapshot: Snapshot, bundles: TrustBundles): SpiffeCredentials {
    const place = this.#place(snapshot, CREDENTIALS);
    bytesOf(place);
    const identity = identityOf({ cert: place, key: place });
    const id = identity.certificate && spiffeIdIn(identity.certificate);
    if (!id) throw new TlsError('ERR_TLS_PEM', `The certificate in "${place.path}" has no SPIFFE ID`);
    const fields = { ...identity, ca: undefined, authorities: [], revision: snapshot.revision };
    const credentials = new SpiffeCredentials(id, bundles, fields);
    mustBeUsable(credentials, this.path);
    this.checkDates({ path: place.path, ...identity });
    return credentials;
  }

  /** A bundle that cannot be used does not prevent the removal of another bundle from taking effect. */
  #bundlesIn(snapshot: Snapshot): TrustBundles {
    const bundles = new Map<string, ReturnType<typeof distinct>>();
    for (const name of snapshot.files.keys()) {
      const domain = name.slice(0, -TRUST_BUNDLE.length);
      if (!name.endsWith(TRUST_BUNDLE) || !isTrustDomain(domain)) continue;
      try {
        const place = this.#place(snapshot, name);
        bundles.set(domain, distinct(parseCertificates(place.path, bytesOf(place), 'ERR_TLS_CA')));
      } catch (error) {
        const last = this.current?.bundles.get(domain);
        if (last) bundles.set(domain, [...last]);
        this.fail(error);
      }
    }
    return bundles;
  }

  #place(snapshot: Snapshot, name: string): TlsPlace {
    return { path: within(this.path, name), file: snapshot.files.get(name) };
  }
}

/**
 * Follows a SPIFFE credential folder: `credential-bundle.private-key.x509.pem`, and one
 * `<trust domain>.spiffe-trust-bundle.x509.pem` for each trust domain. Other files are ignored. Removing a trust bundle
 * ends that federation; a bundle that cannot be used causes an `error`, and the last good one of its domain stays.
 *
 * Experimental, because the proposal is not final.
 * @throws {TypeError | RangeError} for a wrong path or option.
 */
export function spiffeFolder(directory: string | URL, options?: SpiffeFolderOptions): SpiffeFolder {
  return new SpiffeFolder(directory, options);
}
