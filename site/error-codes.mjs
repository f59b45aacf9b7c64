/** Each error code has an anchor in the tables of the page of errors, and is a link to it on every page. */
import { textOf } from './pages.mjs';

const PAGE = 'docs/errors.md';

/** The first cell of a row, and the codes in it. */
const codes = new Set(
  [...textOf(PAGE).matchAll(/^\| *(`ERR_[^|]+)\|/gm)].flatMap(([, cell]) => cell.match(/ERR_\w+/g) ?? []),
);

/** In the form of an anchor, as VitePress writes it in links. */
const anchorOf = (code) => code.toLowerCase();

/** A plugin of markdown-it. */
export function linkErrorCodes(md) {
  md.core.ruler.push('error-codes', ({ tokens, env, Token }) => {
    const page = env.relativePath === 'errors.md' ? '' : '/errors.md';
    tokens.forEach((token, index) => {
      if (token.type !== 'inline' || tokens[index - 1]?.type === 'heading_open') return;
      const isFirstCell = tokens[index - 1]?.type === 'td_open' && tokens[index - 2]?.type === 'tr_open';
      let depth = 0;
      token.children = token.children.flatMap((child) => {
        depth += child.nesting;
        if (child.type !== 'code_inline' || depth > 0 || !codes.has(child.content)) return [child];
        if (page === '' && isFirstCell) child.attrSet('id', anchorOf(child.content));
        const open = new Token('link_open', 'a', 1);
        open.attrSet('href', `${page}#${anchorOf(child.content)}`);
        return [open, child, new Token('link_close', 'a', -1)];
      });
    });
  });
}
