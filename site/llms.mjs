/** llms.txt (what there is) and llms-full.txt (all of it): the pages for readers that take text. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { pageOf, staging, textOf, titleOf, writtenPages } from './pages.mjs';

/** Writes both into the folder whose files are served as they are. */
export function stageTextFiles(modules) {
  const sections = writtenPages().map(
    ({ title, files }) => `## ${title}\n\n${files.map((file) => entry(file)).join('\n')}`,
  );
  const api = modules.map(({ specifier, page }) => `- [\`${specifier}\`](/${html(page)})`);
  const index = `# resilient-watcher\n\n> ${firstSentence('README.md')}\n\n${sections.join('\n\n')}\n\n## API\n\n${api.join('\n')}\n`;
  writeFileSync(join(staging, 'public/llms.txt'), index);

  const guides = writtenPages()
    .filter(({ title }) => title !== 'Project')
    .flatMap(({ files }) => files);
  writeFileSync(join(staging, 'public/llms-full.txt'), guides.map(plainText).join('\n\n'));
}

function entry(file) {
  return `- [${titleOf(file)}](/${html(pageOf(file))}): ${firstSentence(file)}`;
}

const html = (page) => page.replace(/\.md$/, '.html');
const oneLine = (text) => text.replaceAll('\n', ' ').trim();

/** The comments are for the tests of the code. */
function plainText(file) {
  return textOf(file).replace(/<!--[\s\S]*?-->\n*/g, '');
}

/** The first sentence of a page. */
export function firstSentence(file) {
  const paragraphs = plainText(file)
    .split('\n\n')
    .filter((text) => /^[A-Z`]/.test(text));
  const text = oneLine(paragraphs[0] ?? '').replace(/\[([^\]]+)\]\([^)]+\)/g, '$1');
  return /^.*?[.](?=\s|$)/.exec(text)?.[0] ?? text;
}
