/** Which file of the repository becomes which page of the site, and how links between files become links between pages. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, extname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const staging = join(root, 'site/.pages');

/** The folders of the pages, which the addresses of the site do not have. */
const FOLDERS = /^(docs\/internals|docs|packages\/[\w-]+\/docs)\//;

/** The sections of the sidebar, in order: of the library, then one for each package (`of`). A page of docs/ that is not named here comes at the end of the first one. */
export const SECTIONS = [
  {
    title: 'Guide',
    files: [
      'README.md',
      'docs/watching.md',
      'docs/config.md',
      'docs/tokens.md',
      'docs/kubernetes.md',
      'docs/operators.md',
      'docs/atomic-writes.md',
      'docs/recipes.md',
      'docs/frameworks.md',
      'docs/certificates.md',
      'docs/testing.md',
      'docs/observability.md',
      'docs/migrating.md',
    ],
  },
  {
    title: 'Reference',
    files: [
      'docs/errors.md',
      'docs/failure-modes.md',
      'docs/internals/invariants.md',
      'docs/compatibility.md',
      'docs/internals/benchmarks.md',
      'docs/security.md',
    ],
  },
  { title: 'The program', of: '@resilient-watcher/cli', files: ['packages/cli/docs/cli.md'] },
  {
    title: 'Updates within seconds',
    of: '@resilient-watcher/sync-pods',
    files: ['packages/sync-pods/docs/delivery.md'],
  },
  {
    title: 'An API server for tests',
    of: '@resilient-watcher/local-api-server',
    files: ['packages/local-api-server/README.md'],
  },
  { title: 'CSI drivers', of: '@resilient-watcher/csi', files: ['packages/csi/README.md'] },
  { title: 'gRPC', of: '@resilient-watcher/grpc', files: ['packages/grpc/README.md'] },
  {
    title: 'Testing any watcher',
    files: ['packages/conformance/docs/conformance.md', 'packages/conformance/docs/scoreboard.md'],
  },
  {
    title: 'Project',
    files: [
      'docs/architecture.md',
      'docs/internals/cluster-test.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      '.github/RELEASING.md',
      '.github/CODE_OF_CONDUCT.md',
    ],
  },
];

/** The pages that somebody wrote, by section. */
export function writtenPages() {
  const named = new Set(SECTIONS.flatMap(({ files }) => files));
  const others = readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
    .filter((file) => !named.has(file));
  return SECTIONS.map(({ title, of, files }, index) => ({
    title,
    of,
    files: [...files.filter((file) => existsSync(join(root, file))), ...(index === 0 ? others : [])],
  }));
}

/** The page of a file. What is no page of its own is shown under source/, as it stands. */
export function pageOf(file) {
  if (file === 'README.md') return 'index.md';
  // VitePress and web servers hide folders that begin with a dot.
  if (file.endsWith('.md'))
    return file
      .replace(FOLDERS, '')
      .replace(/^\.github\//, 'project/')
      .replace(/^\./, '')
      .toLowerCase();
  return `source/${file.replace(/^\./, '')}.md`;
}

export function textOf(file) {
  return readFileSync(join(root, file), 'utf8');
}

/** The first heading without its markup, for the sidebar and for llms.txt. */
export function titleOf(file) {
  const heading = /^# (.+)$/m.exec(textOf(file))?.[1] ?? file;
  return heading.replaceAll('`', '');
}

/** Writes the pages below `staging`, and with them each file that one of them links to. `programs` are shown, too. */
export function stagePages(programs) {
  const waiting = [...writtenPages().flatMap(({ files }) => files), ...programs];
  const staged = new Set(waiting);
  for (const file of waiting) {
    const link = (target) => {
      if (isPicture(target)) stagePicture(target);
      else if (!staged.has(target)) waiting.push(target);
      staged.add(target);
      return isPicture(target) ? target.replace(FOLDERS, '') : pageOf(target);
    };
    const text = file.endsWith('.md') ? rewriteLinks(file, link) : sourcePage(file);
    stage(pageOf(file), withNarrowPictures(file === 'README.md' ? asLanding(text) : text));
  }
}

/** Where the package and its code are. The repository is known once package.json names it, which a release requires. */
export function homes() {
  const { name, repository } = JSON.parse(textOf('package.json'));
  return {
    npm: `https://www.npmjs.com/package/${name}`,
    github: repository?.url.replace(/^git\+/, '').replace(/\.git$/, ''),
  };
}

/** After the first code and what it is, the first page has the ways into the others, and a picture of the whole. */
function asLanding(text) {
  stagePicture('docs/overview.svg');
  const { npm, github } = homes();
  const ways = [
    '[Get started](./watching.md)',
    `[npm](${npm})`,
    ...(github === undefined ? [] : [`[GitHub](${github})`]),
  ];
  const doors = [
    ['watching', 'Library', 'Follow files, volumes, tokens and configuration in Node.js.'],
    ['cli', 'Program', 'Reload nginx, HAProxy or anything else; find out why a mount never changes.'],
    ['certificates', 'Certificates', 'Serve and trust what cert-manager, kubelet or SPIFFE renew.'],
  ];
  const links = doors.map(([page, name, says]) => `- [**${name}**](./${page}.md) <br> ${says}`);
  const picture = '![One update, from kubelet to what uses it](./overview.svg)';
  const landing = `<div class="landing">\n\n${ways.join(' ')}\n\n${links.join('\n')}\n\n${picture}\n\n</div>\n`;
  return text.replace(/^[A-Z][^\n]*\n(?:[^\n]+\n)*/m, (paragraph) => `${paragraph}\n${landing}`);
}

export function stage(page, text) {
  const path = join(staging, page);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const isPicture = (file) => ['.svg', '.png'].includes(extname(file));

function stagePicture(file) {
  for (const one of [file, narrow(file)].filter((name) => existsSync(join(root, name)))) {
    const path = join(staging, one.replace(FOLDERS, ''));
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(join(root, one), path);
  }
}

/** The variant of a picture that phones show, if there is one. */
const narrow = (picture) => picture.replace(/\.svg$/, '-narrow.svg');

/** Pictures that have a variant for phones show it there. */
function withNarrowPictures(text) {
  return text.replace(/!\[([^\]]+)\]\((\S+\.svg)\)/g, (picture, alt, path) =>
    existsSync(join(staging, narrow(path)))
      ? `<picture><source media="(max-width: 640px)" srcset="${narrow(path)}"><img src="${path}" alt="${alt}"></picture>`
      : picture,
  );
}

/** The text of a page in which each relative link leads to where `link` says its file went. Code is left alone. */
function rewriteLinks(file, link) {
  const parts = textOf(file).split(/(^ *```[\s\S]*?^ *```$|`[^`\n]+`)/m);
  const rewritten = parts.map((part, index) =>
    index % 2 === 1
      ? part
      : part.replace(/\]\(([^)\s]+)\)/g, (whole, target) => {
          if (/^([a-z]+:|#)/.test(target)) return whole;
          const [path, anchor] = target.split('#');
          const page = link(normalize(join(dirname(file), path)).replace(/\/$/, ''));
          const href = relative(dirname(pageOf(file)), page);
          return `](${href.startsWith('.') ? href : `./${href}`}${anchor === undefined ? '' : `#${anchor}`})`;
        }),
  );
  return rewritten.join('');
}

/** A page that shows a file, or what is in a folder. */
function sourcePage(file) {
  const heading = `---\ntitle: ${file}\noutline: false\n---\n\n# \`${file}\`\n\n`;
  if (statSync(join(root, file)).isDirectory()) {
    const names = readdirSync(join(root, file)).map((name) => `- \`${name}\``);
    return `${heading}${names.join('\n')}\n`;
  }
  const language =
    { '.mjs': 'js', '.ts': 'ts', '.json': 'json', '.yaml': 'yaml', '.yml': 'yaml' }[extname(file)] ?? '';
  return `${heading}\`\`\`\`${language}\n${textOf(file)}\`\`\`\`\n`;
}
