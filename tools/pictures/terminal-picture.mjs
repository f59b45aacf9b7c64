/** Text of a terminal as an SVG file. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const LINE = 19;
const LETTER = 8.1;

const escaped = (line) => line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/**
 * Writes `<name>.svg`; `name` is a path in the repository.
 * @param title what the picture shows, for those who cannot see it.
 * @param colorOf the color of a line, or undefined for that of text.
 */
export function writeTerminalPicture({ name, title, text, colorOf }) {
  const shown = text.split('\n');
  const width = Math.max(...shown.map((line) => line.length)) * LETTER + 32;
  const lines = shown.map(
    (line, index) =>
      `<text x="16" y="${32 + index * LINE}" fill="${colorOf(line) ?? '#e6edf3'}" xml:space="preserve">${escaped(line)}</text>`,
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${shown.length * LINE + 36}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13.4" role="img" aria-label="${escaped(title).replaceAll('"', '&quot;')}">
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
${lines.join('\n')}
</svg>
`;
  writeFileSync(fileURLToPath(new URL(`../../${name}.svg`, import.meta.url)), svg);
}
