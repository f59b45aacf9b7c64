/** The scripts of `completion`, asked by the real shells: a command, a flag, the choices of a flag. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test, type TestContext } from 'vitest';

import { skip } from '../../support/namespace.js';
import { runMain } from '../../support/command-line.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

/** How a shell is asked what may follow the words, the last of which is not complete. */
const ASK: Readonly<
  Record<string, (script: string, words: readonly string[], wanted: string) => readonly string[]>
> = {
  bash: (script, words) => [
    ...['--norc', '-c'],
    `source ${script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _resilient_watcher; printf '%s\\n' "\${COMPREPLY[@]}"`,
    ...['bash', ...words],
  ],
  // _arguments and _describe run in the editor of a terminal only.
  zsh: (script, words, wanted) => [
    ...['-f', '-c'],
    `zmodload zsh/zpty
     zpty shell zsh -f -i
     zpty -w shell 'PROMPT=; autoload -U compinit; compinit -u -D; zstyle ":completion:*" list-prompt ""; source ${script}; print -r READY-$((1 + 1))'
     zpty -r -m shell seen '*READY-2*'
     zpty -w -n shell '${words.join(' ')}'$'\\t\\t'
     zpty -r -m shell seen '*${wanted}*'
     print -r -- $seen`,
  ],
  fish: (script, words) => ['--no-config', '-c', `source ${script}; complete -C '${words.join(' ')}'`],
};

async function expectCompletion(
  context: TestContext,
  shell: string,
  line: string,
  wanted: string,
): Promise<void> {
  const { code, stdout } = await runMain(['completion', shell]);
  expect(code).toBe(0);
  const script = join(temporaryDirectory(), 'script');
  writeFileSync(script, stdout);
  const found = spawnSync(shell, ASK[shell]?.(script, line.split(' '), wanted) ?? [], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (found.error) skip(context, `${shell} is not on the PATH`);
  expect([found.stderr, found.stdout]).toEqual(['', expect.stringContaining(wanted)]);
}

test.for(Object.keys(ASK))(
  '%s completes a command, a flag and the choices of a flag',
  async (shell, context) => {
    await expectCompletion(context, shell, 'resilient-watcher sync', 'sync-pods');
    await expectCompletion(context, shell, 'resilient-watcher watch --webhook-m', '--webhook-method');
    await expectCompletion(context, shell, 'resilient-watcher wait --log-level w', 'warn');
    await expectCompletion(context, shell, 'resilient-watcher completion fi', 'fish');
  },
);
