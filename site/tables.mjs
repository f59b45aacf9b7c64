/** Tables of sentences, which phones show row by row: each cell then needs the heading of its column. */

/** A plugin of markdown-it. Tables of numbers stay tables. */
export function stackTables(md) {
  // That of VitePress drops the class.
  md.renderer.rules.table_open = (tokens, index, options, _env, self) => {
    tokens[index].attrSet('tabindex', '0');
    return self.renderToken(tokens, index, options);
  };
  md.core.ruler.push('stack-tables', ({ tokens }) => {
    tokens.forEach((token, index) => {
      if (token.type !== 'table_open') return;
      const end = tokens.findIndex(({ type }, at) => at > index && type === 'table_close');
      const cells = tokens.slice(index, end);
      const isOfNumbers = cells.some((cell) => cell.type === 'td_open' && cell.attrGet('style') !== null);
      if (!isOfNumbers) stack(token, cells);
    });
  });
}

function stack(table, cells) {
  table.attrJoin('class', 'stacked');
  const headings = cells
    .filter((_, at) => cells[at - 1]?.type === 'th_open')
    .map(({ content }) => content.replaceAll(/[`*]/g, ''));
  let column = 0;
  for (const cell of cells) {
    if (cell.type === 'tr_open') column = 0;
    if (cell.type !== 'td_open') continue;
    if (headings[column]) cell.attrSet('data-label', headings[column]);
    column += 1;
  }
}
