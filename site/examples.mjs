/** The code on the pages and in examples/, and which names it uses. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { pageOf, root, textOf, titleOf, writtenPages } from './pages.mjs';

/**
 * A block of a page or a program of examples/.
 * @typedef {{ code: string, language: string, title: string, page: string }} Example
 */

/** @returns {Example[]} those of the pages first, the short ones before the long ones */
export function allExamples() {
  const blocks = writtenPages()
    .flatMap(({ files }) => files)
    .flatMap(blocksOf)
    .sort((one, other) => one.code.length - other.code.length);
  const whole = programs().map((file) => ({
    code: textOf(file),
    language: 'js',
    title: file,
    page: pageOf(file),
  }));
  return [...blocks, ...whole];
}

export function uses(name, { code }) {
  return new RegExp(`\\b${name}\\b`).test(code);
}

function blocksOf(file) {
  const fences = /^( *)```(js|ts)\n([\s\S]*?)^ *```$/gm;
  return [...textOf(file).matchAll(fences)].map(([, indent = '', language, code]) => ({
    code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    language,
    title: titleOf(file),
    page: pageOf(file),
  }));
}

/** The programs in examples/. */
export function programs() {
  return readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.mjs') && !name.includes('node_modules'))
    .map((name) => `examples/${name}`);
}
