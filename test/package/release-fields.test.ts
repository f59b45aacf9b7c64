/** A release stops as long as package.json does not say where the package lives. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { textOf as read, root } from '../docs/markdown.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

function check(manifest: object): { readonly status: number | null; readonly stderr: string } {
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
  const { status, stderr } = spawnSync(process.execPath, [join(root, '.ci/release-fields.mjs')], {
    cwd,
    encoding: 'utf8',
  });
  return { status, stderr };
}

test('each field that is missing is named, and where to read how to set it', () => {
  const { status, stderr } = check({ name: 'x', homepage: 'https://<host>/' });
  expect(status).toBe(1);
  expect(stderr).toMatch(/repository\.url, homepage, bugs\.url, author.*RELEASING\.md/);
});

test('the command of RELEASING.md sets all of them', () => {
  const cwd = temporaryDirectory();
  const manifest = { name: 'x', version: '1.0.0', workspaces: ['.', 'packages/*'] };
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
  mkdirSync(join(cwd, 'packages/y'), { recursive: true });
  writeFileSync(join(cwd, 'packages/y/package.json'), '{"name":"y","version":"1.0.0"}');
  const [, script = ''] = /```sh\n(\s*URL=[\s\S]*?)```/.exec(read('.github/RELEASING.md')) ?? [];
  const { status, stderr } = spawnSync('sh', ['-ec', script], { cwd, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  for (const file of ['package.json', 'packages/y/package.json']) {
    const changed = JSON.parse(readFileSync(join(cwd, file), 'utf8')) as object;
    expect(check(changed)).toEqual({ status: 0, stderr: '' });
  }
});

test('npm publish and the workflow run the check', () => {
  expect(JSON.parse(read('package.json'))).toMatchObject({
    scripts: { prepublishOnly: 'node .ci/release-fields.mjs' },
  });
  expect(read('.github/workflows/release.yml')).toContain('node .ci/release-fields.mjs');
});
