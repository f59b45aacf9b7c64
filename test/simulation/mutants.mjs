/**
 * Changes of the engine that make it wrong: each must be found by some schedule. `node test/simulation/calibrate.mjs` prints after
 * how many schedules it was.
 */

const look = 'fs/targets/tree-look.ts';
const visits = 'fs/targets/tree-visits.ts';
const treeVolume = 'fs/targets/tree-volume.ts';
const volume = 'fs/targets/volume.ts';
const waits = 'watch/waits.ts';
const group = 'fs/targets/group.ts';
const path = 'fs/targets/path.ts';
const file = 'fs/targets/file.ts';
const calls = 'fs/calls.ts';
const report = 'watch/report.ts';
const session = 'watch/session.ts';
const backend = 'watch/backends/node-fs.ts';
const mounts = 'fs/mounts.ts';
const replaceFile = 'write/replace-file.ts';
const pendingFile = 'write/pending-file.ts';
const pendingRevision = 'write/pending-revision.ts';

/** What is removed or changed, in words; the file in `src`; the text, which must be there once; what replaces it. */
export const MUTANTS = [
  [
    'a volume is not proven to be of one revision',
    volume,
    'if (yield* wereRetargeted(revision.way.links, proof)) return MOVED;',
    '',
  ],
  [
    'the directories of a revision are not proven',
    volume,
    'if (!(yield* areAsListed(listed, proof))) return MOVED;',
    '',
  ],
  ['the proof of a volume uses shared answers', volume, 'const proof = disk.afresh;', 'const proof = disk;'],
  [
    'another revision counts as the known one',
    volume,
    'last?.revision.path === revision.path && last.revision.way.links === revision.way.links',
    'last !== undefined',
  ],
  [
    'a listed directory is not verified',
    volume,
    'if (!(yield* areAsListed(reading.listed, disk))) return false;',
    '',
  ],
  [
    'a volume in the gap of a swap is no volume',
    volume,
    'if (!found?.isDirectory()) {',
    'if (!found?.isDirectory()) return undefined;\n  if (false) {',
  ],
  [
    'a group is not proven',
    group,
    '(yield* isAsRead(read, disk.afresh)) ?',
    '(yield* isAsRead([], disk.afresh)) ?',
  ],
  [
    'a group that is missing in part is not proven',
    group,
    "if (isThere !== (kind === 'found')) return false;",
    '',
  ],
  ['a link that comes back counts as the same', 'fs/resolve.ts', 'identityOf(stat) !== identity', 'false'],
  ['the proof of a group uses shared answers', group, 'isAsRead(read, disk.afresh)', 'isAsRead(read, disk)'],
  [
    'a group does not wait for links that are not made yet',
    group,
    "(resolution.kind === 'missing' ? (resolution.unlinkedIn ?? []) : [])",
    '[]',
  ],
  ['a tree is not proven', visits, 'if (yield* wereRetargeted(links, disk)) this.moved(key);', ''],
  [
    'the root of a tree is not proven',
    look,
    'if (yield* wereRetargeted(this.#look.root.way.links, proof)) return MOVED;',
    '',
  ],
  ['a tree does not notice a swap', treeVolume, 'visits.notice(child, revision.way);', ''],
  ['a link in a tree does not notice a swap', look, 'this.#visits.notice(key, way);', ''],
  [
    'a tree only notices a swap of known keys',
    visits,
    'if (known?.revision !== revision) this.#visitVolume(volume);',
    'if (known && known.revision !== revision) this.#visitVolume(volume);',
  ],
  ['a retry of a tree relies on what it has listed', look, 'this.#listed.clear();', ''],
  ['a retry of a tree uses shared answers', look, 'attempt === 1 ? shared : shared.afresh', 'shared'],
  [
    'a retry of a path uses shared answers',
    'fs/attempts.ts',
    'count === 0 ? shared : shared.afresh',
    'shared',
  ],
  [
    'there is no retry',
    'fs/attempts.ts',
    'export const MAX_ATTEMPTS = 20;',
    'export const MAX_ATTEMPTS = 1;',
  ],
  [
    'a link that leads nowhere is missing at once',
    path,
    '(yield* wereRetargeted(at.route.way.links, disk.afresh))',
    'false',
  ],
  [
    'a file that changed while it was read counts as complete',
    calls,
    'const isSteady = isUnchanged(before, after);',
    'const isSteady = true;',
  ],
  [
    'another inode is read than was looked up',
    calls,
    'if (!isSameInode(before, after)) return undefined;',
    '',
  ],
  [
    'a file is known by its time at once',
    'fs/file-identity.ts',
    'return readAt - since > COARSEST_TICK_MS;',
    'return true;',
  ],
  [
    'size and time are not compared',
    'fs/file-identity.ts',
    'return isSame && isSameInode(one, other);',
    'return isSameInode(one, other);',
  ],
  ['every file is complete', waits, 'if (file.size === 0) return false;', 'return true;'],
  ['an empty file is complete', waits, 'if (file.size === 0) return false;', ''],
  [
    'a link makes a file complete that was written since',
    file,
    'isOlderThanLinks: dev === retargetedOn && mtimeNs < retargetedNs,',
    'isOlderThanLinks: true,',
  ],
  [
    'a file in place counts as renamed',
    file,
    'if (mtimeNs >= ctimeNs || nlink === 0n) return false;',
    'if (nlink === 0n) return false;',
  ],
  [
    'a link in the same tick is later',
    file,
    'isOlderThanLinks: dev === retargetedOn && mtimeNs < retargetedNs,',
    'isOlderThanLinks: dev === retargetedOn && mtimeNs <= retargetedNs,',
  ],
  [
    'the first report does not wait for what is being written',
    waits,
    'isFirst && isSteady && hasRested(inode, seenAt, quietMs)',
    'isFirst && isSteady',
  ],
  [
    'what is missing is reported at once',
    waits,
    'return { quietMs: missingGraceMs, maxMs: Infinity };',
    'return NO_WAIT;',
  ],
  [
    'a removed key waits although its volume was swapped',
    waits,
    'isSwapped(known.get(key), revisions)',
    'false',
  ],
  [
    'keys of a volume are due one by one',
    'watch/pending.ts',
    'if (dues.get(volume) === dueAt) continue;',
    'continue;',
  ],
  [
    'a quiet period does not begin again',
    'watch/pending.ts',
    'const isSame = before !== undefined && isKnown && looksSame(before.appearance, appearance);',
    'const isSame = before !== undefined;',
  ],
  [
    'a quiet period lasts 800 ms longer',
    'watch/pending.ts',
    'let dueAt = Math.min(unchangedSince + quietMs, firstSeen + latestMs);',
    'let dueAt = Math.min(unchangedSince + quietMs, firstSeen + latestMs) + (quietMs > 0 ? 800 : 0);',
  ],
  [
    'what is complete waits all the same',
    waits,
    'isQuiet || isComplete(file, before) ? 0 : quietMs',
    'isQuiet ? 0 : quietMs',
  ],
  [
    'what a swap removes waits as if it was lost',
    waits,
    'const isGone = isElsewhere || before.regrouped.has(key) || isSwapped(known.get(key), revisions);',
    'const isGone = before.regrouped.has(key);',
  ],
  [
    'nothing is looked at again after it is listened to',
    session,
    'if (opened.length === 0) break;',
    'if (opened.length >= 0) break;',
  ],
  ['a hint during a look is forgotten', session, 'if (this.#cause !== undefined) this.#wait();', ''],
  [
    "a resync's find is not confirmed",
    session,
    "if ((isNew || isElsewhere) && look.cause === 'resync' && !isConfirmed) {",
    'if (false) {',
  ],
  [
    'a pending difference is not looked at again',
    session,
    'this.#nextLook = clock.schedule(lookAgain, Math.max(0, nextAt - clock.monotonic()), { ref: persistent });',
    'void [lookAgain, persistent];',
  ],
  [
    'a look for another event reports what it has not visited',
    session,
    'for (const path of this.#reporter.pathsDueAt(beganAt, this.#seen)) this.#target.touch(path);',
    "if (cause !== 'fs')\n      for (const path of this.#reporter.pathsDueAt(beganAt, this.#seen)) this.#target.touch(path);",
  ],
  [
    'close() leaves the timer of a pending difference',
    session,
    'this.#nextLook?.cancel();\n    this.#connection.close();',
    'this.#connection.close();',
  ],
  ['close() leaves the native watches', backend, 'return run(this.#leaveAllBut([]));', ''],
  [
    'a replaced directory keeps its old watch',
    backend,
    'if (this.#native && this.#identity === identity) return this.#since;',
    'if (this.#native) return this.#since;',
  ],
  ['events about the directory itself are ignored', backend, 'this.#hintAll(!this.#survives());', ''],
  [
    'a link is not listened to',
    'fs/resolve.ts',
    'if (!known.entries.includes(name)) known.entries = known.entries.concat(name);',
    '',
  ],
  [
    'names that begin with two dots do not count as one',
    'watch/listeners.ts',
    "return isUserVisible(entry) ? entry : '..';",
    'return entry;',
  ],
  [
    'links that lead nowhere are not proven',
    visits,
    'for (const [key, path] of this.#absent) {',
    'for (const [key, path] of [] as [string, string][]) {',
  ],
  [
    'what is gone is not proven',
    visits,
    'for (const [key, path] of this.#gone) {',
    'for (const [key, path] of [] as [string, string][]) {',
  ],
  ['links that are gone are proven', visits, 'this.#ways.delete(key);', ''],
  [
    'a revision that was swapped and removed is a gap',
    volume,
    'if (yield* wereRetargeted(wayToRevision.links, afresh)) return MOVED;',
    '',
  ],
  [
    'start() does not wait for the first report',
    session,
    'await this.#until(() => this.reported !== undefined || this.#reporter.nextAt === Infinity);',
    '',
  ],
  [
    'check() does not wait for the other links of a group',
    session,
    'await this.#until(() => !this.#reporter.isPartlyRetargeted);',
    '',
  ],
  [
    'a wait goes on although the mount was replaced',
    mounts,
    'if (this.#waitsFor(path).id !== mount.id) abandon();',
    'void abandon;',
  ],
  [
    'calls wait for those on a mount that was replaced',
    mounts,
    '.run(`${mount.point} ${mount.id}`, call)',
    '.run(mount.point, call)',
  ],
  ['a file is not synced', pendingFile, 'yield* attempt(() => calls.fsync(this.#fd), UNSUPPORTED);', ''],
  [
    'a file is not closed',
    pendingFile,
    'this.#isOpen = false;\n    yield* wait(calls.close(this.#fd));',
    'this.#isOpen = false;',
  ],
  ['a short write counts as a whole one', pendingFile, 'done += count;', 'done += length;'],
  ['the directory of a file is not synced', replaceFile, 'yield* directory.sync();', ''],
  [
    'a write that failed leaves its file',
    replaceFile,
    'if (!write.published) yield* abandon(directory, file);',
    '',
  ],
  [
    'an error after the rename says that readers see the old file',
    replaceFile,
    'write.published = true;',
    '',
  ],
  ['a volume is not synced', 'write/write-volume.ts', 'yield* volume.sync();', ''],
  ['the directories of a revision are not synced', pendingRevision, 'yield* directory.sync();', ''],
  [
    'a revision is created before it is announced',
    pendingRevision,
    'yield* volume.symlink(name, link);\n    directory = yield* makePrivateDirectory(volume, name);',
    'directory = yield* makePrivateDirectory(volume, name);\n    yield* volume.symlink(name, link);',
  ],
  [
    'a sweep removes what is published',
    'write/volume-sweep.ts',
    'needed.add(yield* publishedRevision(volume));',
    '',
  ],
  [
    'links are not aligned again after another swap',
    'write/volume-links.ts',
    'if ((yield* publishedRevision(volume)) === revision) break;',
    'break;',
  ],
  ['ignore is not asked', 'fs/tree-scope.ts', 'return this.#ignore.matches(key) || (', 'return ('],
  ['links to directories are always followed', look, '&& options.followLinks) {', ') {'],
  ['content: false is not asked', 'fs/read-limits.ts', 'content === false || this.#files', 'this.#files'],
  [
    'maxFiles is not asked',
    volume,
    "places.length > limits.maxFiles ? 'identities' : totals.kept",
    'totals.kept',
  ],
  [
    'the timer of a resync keeps the process alive',
    'watch/ticker.ts',
    '{ ref: persistent }',
    '{ ref: true }',
  ],
  [
    'a native watch keeps the process alive',
    backend,
    'if (this.#persistent > 0) native.ref();',
    'native.ref();',
  ],
  [
    'names that are not UTF-8 are taken as they are decoded',
    calls,
    'if (!entries.some(({ name }) => mayHaveLostBytes(name))) return entries;',
    'return entries;',
  ],
  [
    'a signal that aborts later is not heard',
    'core/lifecycle/lifecycle.ts',
    'this.#unlisten = onAbort(this.#signal, () => void this.close());',
    '',
  ],
  [
    'a change that waits in a stream is replaced',
    'watch/change-stream.ts',
    'this.#waiting === undefined ? change : mergeChanges(this.#waiting, change)',
    'change',
  ],
  [
    'a file that outgrows the limit is told as it is now',
    file,
    'if (stat && !hasNoSize) return undefined;',
    '',
  ],
  [
    'a link of /proc is followed by its text',
    'fs/magic-link.ts',
    "if (size === 0n && OF_PROCESS.test(name)) return 'magic';",
    '',
  ],
  [
    'a mount that is covered counts as reachable',
    'fs/mount-table.ts',
    'if (mounted.has(`${parent} ${point}`)) return true;',
    '',
  ],
  [
    'what is behind a link of /proc is on the mount of its path',
    mounts,
    'if (isBehindMagicLink(path)) return mountOfKind(magicLinkOf(path), UNKNOWN.kind);',
    '',
  ],
  [
    'what a writer opens behind a link of /proc counts as local',
    'write/open-directory.ts',
    '|| OF_PROCESS.test(path);',
    ';',
  ],
  [
    'a link of a writer to a link of /proc counts as local',
    'write/open-directory.ts',
    'OF_PROCESS.test(path)',
    'OF_PROCESS.test(write.path)',
  ],
  [
    'a writer opens a directory at once while a mount may hang',
    'write/open-directory.ts',
    'Mounts.of(fs).mayHangSomewhere ||',
    '',
  ],
  [
    'only the first of several watchers hears of an entry',
    backend,
    'const all = this.#listeners.to(entry);',
    'const all = this.#listeners.to(entry).slice(0, 1);',
  ],
  [
    'a watcher that leaves ends the watch of the others',
    backend,
    'if (this.#listeners.isEmpty) this.#close();',
    'this.#close();',
  ],
  [
    'a watcher that leaves takes the entries of others along',
    'watch/listeners.ts',
    'if (some?.size === 0) this.#byEntry.delete(name);',
    'this.#byEntry.delete(name);',
  ],
  [
    'entries that are added to those listened to are not heard',
    'watch/listeners.ts',
    'for (const entry of added) this.#join(who, listedAs(entry));',
    'if (!isListening) for (const entry of added) this.#join(who, listedAs(entry));',
  ],
  [
    'what a limit keeps from being watched counts as watched',
    backend,
    'throw backendFailure(NAME, path, error);',
    'return NOTHING;',
  ],
  [
    'a tree of parcel whose root is gone counts as watched',
    'watch/backends/parcel-watch.ts',
    "if (path !== this.root.path || type === 'delete') native.trees.get(path)?.drop();",
    '',
  ],
  [
    'parcel is called without an inotify instance',
    'watch/backends/parcel-watch.ts',
    'await probeInotify();',
    '',
  ],
  [
    'the death of parcel is not heard',
    'watch/backends/parcel-watch.ts',
    'for (const listener of this.listeners) listener.died(death);',
    '',
  ],
  [
    'parcel unsubscribes after its death',
    'watch/backends/parcel-watch.ts',
    'if (!subscription || this.#life.over) return;',
    'if (!subscription) return;',
  ],
  [
    'a watcher that leaves ends the tree of the others',
    'watch/backends/parcel-watch.ts',
    'if (tree.listeners.size === 0) await tree.end();',
    'await tree.end();',
  ],
  [
    'a tree of parcel is never left',
    'watch/backends/parcel-watch.ts',
    'if (tree.listeners.size === 0) await tree.end();',
    '',
  ],
  [
    'a tree of parcel that closes goes on to its directories',
    'watch/backends/parcel.ts',
    'if (this.#isClosed) return joined;',
    '',
  ],
  [
    'a file that is mounted by itself is not listened to',
    'watch/look.ts',
    'if (stat?.isFile()) files.push({ path, identity: identityOf(stat), isFile: true });',
    '',
  ],
  [
    'a directory of a tree that was replaced counts as watched by parcel',
    'watch/backends/parcel-watch.ts',
    'if (this.#listed.get(path) !== identity) return false;',
    'if (!this.#listed.has(path)) return false;',
  ],
  [
    'a backend that fails while it is subscribed counts as up',
    'watch/connection.ts',
    '      if (failure) throw failure.error;\n',
    '',
  ],
  [
    'a mounted file that may not be read makes the backend fail',
    backend,
    '(isAncestor === true || isFile === true) && isDenied(error)',
    'isAncestor === true && isDenied(error)',
  ],
  [
    'a directory above that could not be listened to is never tried again',
    backend,
    'if (isSame && this.#denied.length === 0) return NOTHING;',
    'if (isSame) return NOTHING;',
  ],
  [
    'one octal number in a mount point is decoded',
    'fs/mount-table.ts',
    'field.replace(/\\\\([0-7]{3})/g, (_',
    'field.replace(/\\\\([0-7]{3})/, (_',
  ],
  [
    'what does not exist yet is not asked for the kind of its file system',
    mounts,
    "if (errnoOf(error) !== 'ENOENT' || place === dirname(place)) return;",
    'void errnoOf(error);\n        return;',
  ],
  [
    'the directory of a file is not asked for the kind of its file system',
    mounts,
    'for (const place of [path, dirname(path)]) await this.ask(place);',
    'await this.ask(path);',
  ],
  [
    'a link with a number as its name leads to an open file',
    'fs/magic-link.ts',
    'const isOfFile = size === 64n && (mode & ALL_PERMISSIONS) !== ALL_PERMISSIONS && OF_FILE.test(name);',
    'void mode;\n  const isOfFile = size === 64n && OF_FILE.test(name);',
  ],
  [
    'a link on another file system dates a file',
    file,
    'isOlderThanLinks: dev === retargetedOn && mtimeNs < retargetedNs,',
    'isOlderThanLinks: mtimeNs < retargetedNs,',
  ],
  [
    'files of a directory are gone with the link that showed them',
    visits,
    'if (haveDirectoriesChanged) for (const key of this.#nodes.takeOrphans()) this.visit(key);',
    'void haveDirectoriesChanged;',
  ],
  [
    'a member that is away while a group changes is gone',
    waits,
    "before.realPath === realPath || kind === 'group') return false;",
    'before.realPath === realPath) return false;',
  ],
  [
    'a file server in a wrong time zone makes files old',
    'fs/file-identity.ts',
    'const LARGEST_SKEW_MS = 24 * 3_600_000;',
    'const LARGEST_SKEW_MS = 2 * 3_600_000;',
  ],
  [
    'unreadable names what could not be read first',
    'watch/look.ts',
    'seen.error.message === before.error.message',
    'seen.error.code === before.error.code',
  ],
  [
    'the age of the last check moves with the wall clock',
    session,
    'sinceLastCheckMs: this.#lookedAt === undefined ? null : clock.monotonic() - this.#lookedAt,',
    'sinceLastCheckMs: this.#lookedAt === undefined ? null : clock.now() - (this.#counts.lastCheckAt ?? clock.now()),',
  ],
  [
    'what was cleared is not synced',
    'write/write-volume.ts',
    'remove it`);\n  yield* sync(volume);\n}',
    'remove it`);\n}',
  ],
  [
    'a volume that is cleared while another writer publishes loses its links',
    'write/write-volume.ts',
    'yield* alignLinks(volume);\n  } finally {',
    '} finally {',
  ],
  [
    'what another writer has removed meanwhile is an error',
    'write/volume-sweep.ts',
    'if (errnoOf(error) !== undefined && !(yield* wait(parent.lstat(name)))) return;',
    '',
  ],
  [
    'what writers left is old by our clock alone',
    'write/sweep.ts',
    'mayBeAbandoned && (now ??= yield* timeIn(directory, kind)) - ctimeMs > ABANDONED_AFTER_MS',
    'mayBeAbandoned',
  ],
  [
    'it is watching before its backend is subscribed',
    'watch/connection.ts',
    "if (tag === 'closed') return 'starting';",
    "if (tag === 'closed') return 'watching';",
  ],
];

/** Not by seeds: a loop within a loop, which the kind `many` counts. */
export const LOOP_IN_A_LOOP = [
  'a link is found by going through all of them',
  'fs/targets/link-routes.ts',
  'const links = place.entries.get(entry);\n      if (links)',
  'const links = [...place.entries].find(([name]) => name === entry)?.[1];\n      if (links)',
];
