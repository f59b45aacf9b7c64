/** Refuses a release until package.json says where the package lives, which only the owner knows (.github/RELEASING.md). */
import { readFileSync } from 'node:fs';

const { author, bugs, homepage, repository } = JSON.parse(readFileSync('package.json', 'utf8'));

const isUrl = (value) => typeof value === 'string' && URL.canParse(value) && !/[<>]/.test(value);
const missing = [
  !isUrl(repository?.url) && 'repository.url',
  !isUrl(homepage) && 'homepage',
  !isUrl(bugs?.url) && 'bugs.url',
  !author && 'author',
].filter(Boolean);

if (missing.length > 0) {
  console.error(
    `package.json has no ${missing.join(', ')}: see "Once" in .github/RELEASING.md for the command that sets them`,
  );
  process.exitCode = 1;
}
