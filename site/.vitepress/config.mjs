import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitepress';

import { firstSentence } from '../llms.mjs';
import { linkErrorCodes } from '../error-codes.mjs';
import { breakLongNames } from '../long-names.mjs';
import { homes, pageOf, titleOf, writtenPages } from '../pages.mjs';
import { stackTables } from '../tables.mjs';

const modules = JSON.parse(
  readFileSync(fileURLToPath(new URL('../.pages/modules.json', import.meta.url)), 'utf8'),
);

const { version, description } = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
);
const base = process.env.DOCS_BASE ?? '/';
const { npm, github } = homes();
const elsewhere = {
  socialLinks: [{ icon: 'npm', link: npm }, ...(github ? [{ icon: 'github', link: github }] : [])],
  ...(github && { editLink: { text: 'Edit this page', pattern: ({ filePath }) => sourceOf(filePath) } }),
};
const sources = new Map(writtenPages().flatMap(({ files }) => files.map((file) => [pageOf(file), file])));

const written = writtenPages().map(({ title, of, files }) => ({
  text: title,
  items: [
    ...files.map((file) => ({
      text: file === 'README.md' ? 'Start here' : titleOf(file),
      link: `/${pageOf(file)}`,
    })),
    // That of a package has its reference, too.
    ...modules
      .filter((module) => module.package === of)
      .map((module) => ({ text: `API: ${module.specifier}`, link: folderOf(module) })),
  ],
}));

/**
 * A section for each package. On the pages of an entry point its exports, and the way to the others: all exports on each
 * page would be most of it.
 */
const reference = Object.fromEntries(
  modules.map((shown) => [
    folderOf(shown),
    [...new Set(modules.map((module) => module.package))].map((name) => ({
      text: name,
      items: modules.filter((module) => module.package === name).map((module) => entryOf(module, shown)),
    })),
  ]),
);

function entryOf(module, shown) {
  return {
    text: module.specifier,
    link: folderOf(module),
    ...(module === shown && {
      items: module.exports.map((item) => ({ text: item.name, link: `/${item.page}` })),
    }),
  };
}

export default defineConfig({
  title: 'resilient-watcher',
  description,
  lang: 'en',
  base,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}icon.svg` }]],
  transformHead: ({ title, description: text }) => [
    ['meta', { property: 'og:type', content: 'website' }],
    ['meta', { property: 'og:site_name', content: 'resilient-watcher' }],
    ['meta', { property: 'og:title', content: title }],
    ['meta', { property: 'og:description', content: text }],
  ],
  // Each page describes itself, by its first sentence.
  transformPageData: ({ relativePath }) => ({ description: descriptionOf(relativePath) }),
  srcDir: '.pages',
  outDir: 'dist',
  // GitHub's anchors, which the links of the pages are written for.
  markdown: {
    anchor: { slugify: anchorOf },
    config: (md) => [stackTables, linkErrorCodes, breakLongNames].forEach((use) => md.use(use)),
  },
  // Pictures keep their names, by which the style knows them.
  vite: { build: { chunkSizeWarningLimit: 2_000, assetsInlineLimit: 0 } },
  themeConfig: {
    logo: { src: '/icon.svg', alt: '' },
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: {
            // Guides before pages that are generated. It runs in the browser, where nothing of this file is.
            boostDocument: (id) => (/\/(api|source)\//.test(id) ? 0.2 : 1),
          },
        },
      },
    },
    ...elsewhere,
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/watching' },
      { text: 'Errors', link: '/errors' },
      { text: 'API', link: '/api/', activeMatch: '/api/' },
      { text: `v${version}`, link: '/changelog' },
    ],
    sidebar: { '/': written, ...reference },
  },
});

function descriptionOf(page) {
  const file = sources.get(page);
  return (file && firstSentence(file)) || description;
}

/** Pages that are generated have no source to edit. */
function sourceOf(page) {
  const file = sources.get(page);
  return file === undefined ? github : `${github}/edit/main/${file}`;
}

function folderOf({ page }) {
  return `/${page.replace(/index\.md$/, '')}`;
}

function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}
