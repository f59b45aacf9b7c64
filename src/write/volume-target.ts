import { within } from '../fs/absolute-path.js';
import { call, type Effects } from '../fs/effects.js';
import { hopsOf, type LinkChain, type ResolvedChain } from '../fs/link-chain.js';
import { resolveChain } from '../fs/resolve-chain.js';
import { TargetError, targetError, type TargetErrorCode } from '../fs/target-error.js';
import type { AllowedMounts, Found, Moment, Observation } from '../fs/observation.js';
import { PathTarget } from '../fs/targets/path-target.js';
import { DATA_LINK } from '../fs/volume-layout.js';
import { ifExists } from './tolerated-failures.js';

/**
 * A volume as its writer reads it back: only files of its revision, and all of them. Somebody who can write to the volume
 * could otherwise make a privileged reader load and hand out any file. `PathTarget` refuses a `..data` that leads out.
 */
export class VolumeTarget extends PathTarget {
  override *observe(known?: Found, allowedMounts?: AllowedMounts, now?: Moment): Effects<Observation> {
    const volume = yield* resolveChain(this.path, allowedMounts);
    const { end } = volume;
    if (end.kind !== 'found' || !end.stat.isDirectory())
      return yield* super.observe(known, allowedMounts, now);
    const link = within(end.path, DATA_LINK);
    // Nothing of a directory that is no volume is read.
    const chain = yield* this.resolve(allowedMounts);
    if (chain.end.kind === 'found' && !hopsOf(chain).has(link))
      return yield* this.#withoutRevision(chain, link);
    const seen = yield* super.observe(known, allowedMounts, now);
    if (seen.kind !== 'found') return seen;
    if (!hopsOf(seen.chain).has(link)) return { kind: 'unstable', chain: seen.chain };
    for (const { snapshot } of seen.files.values()) {
      if (!snapshot.realPath.startsWith(`${seen.snapshot.realPath}/`)) {
        return { kind: 'unreadable', chain, error: targetError('ERR_TARGET_LAYOUT', snapshot.path) };
      }
    }
    if (seen.limited !== undefined) return this.#unreadable(seen.chain, 'ERR_TARGET_TOO_LARGE', seen.limited);
    return seen;
  }

  /** Nothing is published, or `..data` is something else than a link. */
  *#withoutRevision(chain: ResolvedChain, link: string): Effects<Observation> {
    const stat = yield* ifExists(call('lstat', link));
    if (!stat) return { kind: 'missing', chain };
    if (stat.isSymbolicLink()) return { kind: 'unstable', chain };
    return this.#unreadable(chain, 'ERR_TARGET_NOT_DIRECTORY', `"${DATA_LINK}" is not a symbolic link`);
  }

  #unreadable(chain: LinkChain, code: TargetErrorCode, what: string): Observation {
    const error = new TargetError(code, this.path, `Cannot read the volume "${this.path}": ${what}`);
    return { kind: 'unreadable', chain, error };
  }
}
