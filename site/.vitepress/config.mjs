import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitepress';

import { pageOf, titleOf, writtenPages } from '../pages.mjs';

const modules = JSON.parse(
  readFileSync(fileURLToPath(new URL('../.pages/modules.json', import.meta.url)), 'utf8'),
);

const written = writtenPages().map(({ title, files }) => ({
  text: title,
  items: files.map((file) => ({
    text: file === 'README.md' ? 'Start here' : titleOf(file),
    link: `/${pageOf(file)}`,
  })),
}));

/** On the pages of an entry point its exports, and the way to the others: all exports on each page would be most of it. */
const reference = Object.fromEntries(
  modules.map((shown) => [
    folderOf(shown),
    modules.map((module) => ({
      text: module.specifier,
      link: folderOf(module),
      ...(module === shown && {
        items: module.exports.map((item) => ({ text: item.name, link: `/${item.page}` })),
      }),
    })),
  ]),
);

export default defineConfig({
  title: 'resilient-watcher',
  description: 'Watches files the way Kubernetes changes them: each change once, whole, within milliseconds.',
  lang: 'en',
  base: process.env.DOCS_BASE ?? '/',
  // No icon: browsers ask for one otherwise.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: '.pages',
  outDir: 'dist',
  // GitHub's anchors, which the links of the pages are written for.
  markdown: { anchor: { slugify: anchorOf } },
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/watching' },
      { text: 'Errors', link: '/errors' },
      { text: 'API', link: '/api/index/', activeMatch: '/api/' },
    ],
    sidebar: { '/': written, ...reference },
  },
});

function folderOf({ page }) {
  return `/${page.replace(/index\.md$/, '')}`;
}

function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}
