import { execFile } from 'node:child_process';
import { mkdir, readFile, realpath, rmdir } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Creates the directory of a volume: a tmpfs if the process may mount one, so that secrets are not written to a disk,
 * otherwise a plain directory. An existing directory or mount is left as it is.
 */
export async function ensureDirectory(path, onWarning) {
  await mkdir(path, { recursive: true, mode: 0o750 });
  if (process.getuid?.() !== 0 || (await isMountPoint(path))) return;
  await run('mount', [
    '-t',
    'tmpfs',
    '-o',
    'size=4m,mode=0755,nosuid,nodev,noexec',
    'csi-secrets',
    path,
  ]).catch((error) => onWarning(`a plain directory is used for ${path}: ${error.message.trim()}`));
}

/** Removes the mount and the directory. Has no effect if they are gone. */
export async function removeDirectory(path) {
  while (await isMountPoint(path)) await run('umount', [path]);
  await rmdir(path).catch((error) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

/** The table has real paths, and kubelet may pass one that leads through a link. */
async function isMountPoint(path) {
  const place = await realpath(path).catch(() => path);
  const table = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const unescape = (text) =>
    text.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8)));
  return table.split('\n').some((line) => unescape(line.split(' ')[4] ?? '') === place);
}
