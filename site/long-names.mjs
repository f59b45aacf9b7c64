/** Where names break on a narrow screen: between their words, and short ones only where the style says so. */

/** What fits beside others on a phone, in characters. */
const SHORT = 24;

/** A plugin of markdown-it. */
export function breakLongNames(md) {
  const render = md.renderer.rules.code_inline;
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token.content.length <= SHORT) token.attrJoin('class', 'short');
    return render(tokens, index, ...rest).replace(/>([^<]+)</, (_match, text) => `>${withBreaks(text)}<`);
  };
  md.core.ruler.push('break-headings', ({ tokens, Token }) => {
    tokens.forEach(({ type }, index) => {
      if (type === 'heading_open') breakHeading(tokens[index + 1], Token);
    });
  });
}

const withBreaks = (text) => text.replace(/([/_.=,]|[a-z](?=[A-Z]))(?=\S)/g, '$1<wbr>');

/** Its text is left as it is, since anchors and the search are made of it. */
function breakHeading(inline, Token) {
  inline.children = inline.children.flatMap((child) => {
    if (child.type !== 'text') return [child];
    const [first = '', ...others] = child.content.split(/(?<=[a-z])(?=[A-Z])/);
    return [textToken(first), ...others.flatMap((part) => [breakToken(), textToken(part)])];
  });

  function textToken(content) {
    return Object.assign(new Token('text', '', 0), { content });
  }

  function breakToken() {
    return Object.assign(new Token('html_inline', '', 0), { content: '<wbr>' });
  }
}
