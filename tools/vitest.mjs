/** `node tools/vitest.mjs NAME=VALUE… ARG…`: vitest with these variables, unless they are set. No shell has to know how that is written. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const env = { ...process.env };
const args = process.argv.slice(2);
for (let pair = /^([A-Z]+)=(.*)$/.exec(args[0]); pair; pair = /^([A-Z]+)=(.*)$/.exec(args[0])) {
  env[pair[1]] ??= pair[2];
  args.shift();
}
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const { status } = spawnSync(process.execPath, [vitest, 'run', ...args], { env, stdio: 'inherit' });
process.exitCode = status ?? 1;
