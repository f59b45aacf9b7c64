/** The API reference: a page for each export, from the docstrings, each with an example or the way to one. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, normalize, relative } from 'node:path';

import { Application, LogLevel, ReflectionKind } from 'typedoc';

import { packages } from '../packages/packages.mjs';
import { allExamples, uses } from './examples.mjs';
import { root, stage, staging, textOf } from './pages.mjs';

const folder = join(staging, 'api');

/** What each entry point is for, in the order of use: those of the library, then of the packages. One that is not named comes last. */
const PURPOSES = {
  'resilient-watcher': 'Watch files, volumes and trees; tokens, passwords, atomic writes, logs and health.',
  'resilient-watcher/config': 'Load, merge and validate configuration, and keep the last good one.',
  'resilient-watcher/tls': 'Serve and present certificates that are renewed.',
  'resilient-watcher/trust':
    'Preloaded, it makes every client of the process trust a CA bundle that changes.',
  'resilient-watcher/kubernetes': 'Request tokens, and keep kubeconfigs valid.',
  'resilient-watcher/prometheus': 'Metrics for `prom-client`.',
  'resilient-watcher/otel': 'Metrics and traces for `@opentelemetry/api`.',
  'resilient-watcher/testing': 'Time, hints, volumes and an API server that a test controls.',
  '@resilient-watcher/cli/action':
    'Run a command, send a signal or call a webhook when something has changed.',
  '@resilient-watcher/cli/doctor': 'Find out why a path never shows an update, or how soon it will.',
  '@resilient-watcher/cli/manifests': 'The rules of `doctor --manifest`.',
  '@resilient-watcher/sync-pods': 'Make kubelet update the files of pods at once.',
  '@resilient-watcher/local-api-server': 'An API server and a certificate authority that a test controls.',
  '@resilient-watcher/csi': 'Publish the volumes of a CSI driver.',
  '@resilient-watcher/grpc': 'Credentials of `@grpc/grpc-js` that follow files.',
};
const ORDER = Object.keys(PURPOSES);
const rank = ({ specifier }) => (ORDER.includes(specifier) ? ORDER.indexOf(specifier) : ORDER.length);

/** Of each package: what a program imports, the file, and the name of the folder of its pages. What is internal is no API. */
const ENTRY_POINTS = packages
  .flatMap(({ folder: home, manifest, entryPoints }) =>
    entryPoints.map(({ specifier, name }) => ({
      specifier,
      of: manifest.name,
      file: join(root, home, `src/${name}.ts`),
      name: home === '' ? name : [basename(home), name].join('-').replace(/-index$/, ''),
    })),
  )
  .filter(({ specifier }) => specifier !== 'resilient-watcher/internal')
  .toSorted((one, other) => rank(one) - rank(other));

const OPTIONS = {
  out: folder,
  tsconfig: join(root, 'tsconfig.json'),
  plugin: ['typedoc-plugin-markdown'],
  router: 'member',
  readme: 'none',
  name: 'API',
  entryFileName: 'index',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  disableSources: true,
  excludePrivate: true,
  excludeProtected: true,
  excludeInternal: true,
  excludeExternals: true,
  // `npm run lint` does that.
  skipErrorChecking: true,
  // Parts of a signature that have no export of their own are shown where they are used.
  validation: { notExported: false, invalidLink: true },
  logLevel: LogLevel.Warn,
};

/**
 * Writes the pages.
 * @returns the sections of their sidebar, and the files that must be staged because an example of theirs is shown there
 */
export async function stageReference() {
  const app = await Application.bootstrapWithPlugins({
    ...OPTIONS,
    entryPoints: ENTRY_POINTS.map(({ file }) => file),
  });
  const found = app.getEntryPoints();
  if (!found) throw new Error('typedoc could not read the entry points');
  const names = new Map(ENTRY_POINTS.map(({ file, name }) => [file, name]));
  for (const point of found) point.displayName = names.get(normalize(point.sourceFile.fileName));
  const project = app.converter.convert(found);
  app.validate(project);
  await app.generateOutputs(project);
  if (app.logger.hasErrors() || app.logger.hasWarnings())
    throw new Error('typedoc is not content: see above');

  const children = new Map(project.children.map((module) => [module.name, module]));
  const modules = ENTRY_POINTS.map(({ specifier, of, name }) => ({
    specifier,
    package: of,
    page: `api/${name}/index.md`,
    exports: (children.get(name).children ?? [])
      .filter(({ kind }) => kind !== ReflectionKind.Reference)
      .map((reflection) => exportOf(name, reflection)),
  }));
  addExamples(modules.flatMap((module) => module.exports));
  const purpose = ({ specifier }) => PURPOSES[specifier] ?? '';
  for (const module of modules) stage(module.page, moduleIndex(module, purpose(module)));
  stage('api/index.md', contents(modules, purpose));
  return modules;
}

/** The first page of the reference: every entry point and every export, with a sentence. */
function contents(modules, purpose) {
  const sections = modules.map(
    (module) =>
      `## [\`${module.specifier}\`](${relativeLink('api/index.md', module.page)})\n\n${purpose(module)}\n\n${exportTable('api/index.md', module.exports)}`,
  );
  return `---\noutline: 2\n---\n\n# API\n\nThe entry points, in the order in which most programs need them, and what each exports.\n\n${sections.join('\n\n')}\n`;
}

/** The page of an entry point. */
function moduleIndex({ specifier, page, exports }, purpose) {
  const sections = Object.entries(HEADINGS).flatMap(([folder, heading]) => {
    const shown = exports.filter(({ kind }) => kind === folder);
    return shown.length === 0 ? [] : [`## ${heading}\n\n${exportTable(page, shown)}`];
  });
  const path = relativeLink(page, 'api/index.md');
  return `# \`${specifier}\`\n\n${purpose}\n\n${sections.join('\n\n')}\n\n[All entry points](${path})\n`;
}

function exportTable(page, exports) {
  const order = Object.keys(HEADINGS);
  const sorted = exports.toSorted((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind));
  const rows = sorted.map(
    ({ name, page: to, sentence }) =>
      `| [\`${name}\`](${relativeLink(page, to)}) | ${sentence.replaceAll('|', '\\|')} |`,
  );
  return `| export | what it is |\n| --- | --- |\n${rows.join('\n')}`;
}

const FOLDERS = {
  [ReflectionKind.Class]: 'classes',
  [ReflectionKind.Function]: 'functions',
  [ReflectionKind.Interface]: 'interfaces',
  [ReflectionKind.TypeAlias]: 'type-aliases',
  [ReflectionKind.Variable]: 'variables',
};

/** What the kinds of exports are called, in the order in which a reader needs them. */
const HEADINGS = {
  functions: 'Functions',
  classes: 'Classes',
  variables: 'Variables',
  interfaces: 'Interfaces',
  'type-aliases': 'Types',
};

/** The first sentence of a docstring. */
function sentenceOf({ name, comment, signatures = [], type }) {
  const found = [comment, ...signatures.map((one) => one.comment), type?.declaration?.comment].find(
    (one) => one?.summary.length,
  );
  const text = (found?.summary ?? [])
    .map((part) => part.text)
    .join('')
    .split('\n\n')[0]
    .replaceAll(/\s+/g, ' ')
    .trim();
  if (text === '') throw new Error(`${name} has no docstring`);
  return /^.*?[.](?=\s|$)/.exec(text)?.[0] ?? text.replace(/:$/, '.');
}

function exportOf(module, reflection) {
  const { name, kind, comment, signatures = [] } = reflection;
  const page = `api/${module}/${FOLDERS[kind]}/${name}.md`;
  const comments = [comment, ...signatures.map((signature) => signature.comment)];
  const text = comments.flatMap((one) => [
    ...(one?.summary ?? []),
    ...(one?.blockTags ?? []).flatMap((tag) => tag.content),
  ]);
  const own = text.filter(({ kind: part, text: code }) => part === 'code' && code.startsWith('```'));
  return {
    name,
    kind: FOLDERS[kind],
    page,
    sentence: sentenceOf(reflection),
    /** The examples in the docstring. */
    own: own.map(({ text: code }) => ({ code, language: 'ts', title: name, page })),
  };
}

/**
 * Ends each page with the shortest block of code that uses the name, unless the docstring has one, and with links to others.
 * A type that no example names is shown by the example of what it belongs to.
 */
function addExamples(exports) {
  const examples = [...exports.flatMap(({ own }) => own), ...allExamples()];
  const texts = new Map(exports.map(({ page }) => [page, readFileSync(join(staging, page), 'utf8')]));
  const using = new Map(
    exports.map(({ name, page }) => [page, examples.filter((example) => uses(name, example))]),
  );
  const hasExample = (page) => using.get(page).length > 0;
  const without = [];
  for (const { name, kind, page, own } of exports) {
    const user = hasExample(page) || !isType(kind) ? undefined : nearestUser(page, texts, hasExample);
    if (hasExample(page)) append(page, exampleSection(page, own, using.get(page)));
    else if (user !== undefined)
      append(page, `## Example\n\nSee [\`${nameOf(user)}\`](${relativeLink(page, user)}).`);
    else without.push(`${name} (${kind})`);
  }
  if (without.length > 0) throw new Error(`No example shows ${without.join(', ')}`);
}

const isType = (kind) => kind === 'interfaces' || kind === 'type-aliases';

function exampleSection(page, own, using) {
  const others = using.filter((example) => example.page !== page);
  // A program of examples/ is linked, not copied.
  const copied = own.length === 0 ? others.find((example) => !example.page.startsWith('source/')) : undefined;
  const places = new Map(
    others.filter((example) => example !== copied).map((example) => [example.page, example]),
  );
  const link = ({ title, page: to }) => `[${title}](${relativeLink(page, to)})`;
  const also = [...places.values()].slice(0, 6).map(link).join(', ');
  if (copied === undefined) return also === '' ? '' : `## Used in\n\n${also}`;
  const code = copied.code.startsWith('```') ? copied.code : `\`\`\`${copied.language}\n${copied.code}\`\`\``;
  return `## Example\n\nFrom ${link(copied)}:\n\n${code}\n${also === '' ? '' : `\nAlso in ${also}.`}`;
}

/** The nearest page with an example on the way from a type to what mentions it, and what mentions that. */
function nearestUser(page, texts, hasExample) {
  const seen = new Set([page]);
  for (const target of seen) {
    const name = new RegExp(`\\b${nameOf(target)}\\b`);
    for (const [user, text] of texts) {
      if (seen.has(user) || !name.test(text)) continue;
      if (hasExample(user)) return user;
      seen.add(user);
    }
  }
  return undefined;
}

function nameOf(page) {
  return basename(page, '.md');
}

function relativeLink(from, to) {
  const href = relative(dirname(from), to);
  return href.startsWith('.') ? href : `./${href}`;
}

function append(page, text) {
  if (text !== '') appendFileSync(join(staging, page), `\n${text}\n`);
}
