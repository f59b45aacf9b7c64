/** Refuses a release until each package.json says where its package lives, which only the owner knows (.github/RELEASING.md). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const isUrl = (value) => typeof value === 'string' && URL.canParse(value) && !/[<>]/.test(value);
const packages = existsSync('packages')
  ? readdirSync('packages').map((name) => `packages/${name}/package.json`)
  : [];

for (const file of ['package.json', ...packages].filter((path) => existsSync(path))) {
  const { author, bugs, homepage, repository } = JSON.parse(readFileSync(file, 'utf8'));
  const missing = [
    !isUrl(repository?.url) && 'repository.url',
    !isUrl(homepage) && 'homepage',
    !isUrl(bugs?.url) && 'bugs.url',
    !author && 'author',
  ].filter(Boolean);
  if (missing.length === 0) continue;
  console.error(
    `${file} has no ${missing.join(', ')}: see "Once" in .github/RELEASING.md for the command that sets them`,
  );
  process.exitCode = 1;
}
