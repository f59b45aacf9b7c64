/**
 * Inline code of the pages that is compiled as well as the blocks: in tables, lists and sentences. It is an expression if it
 * - calls, with arguments, what a package of this repository exports: `watch(path)`, `new TokenFile(path)`;
 * - or reads a member of one of the `OBJECTS` below: `loader.current?.db.host`.
 *
 * With `…` in place of something, it is none. Other names have to be among those below.
 */
import { packages } from '../../packages/packages.mjs';
import { textOf, type CodeBlock } from './markdown.js';

const OBJECTS = {
  files: `import('resilient-watcher/tls').TlsFiles`,
  loader: `import('resilient-watcher/config').ConfigLoader<Config>`,
  token: `import('resilient-watcher').TokenFile`,
  watcher: `import('resilient-watcher').ResilientWatcher`,
};

/** `any`, except where something of ours is to accept the type. */
const NAMES = {
  'a, b, bundle, ca, cert, data, directory, key, path, value': 'string',
  'interval, ms': 'number',
  'callback, listener, reload, use': '(argument: unknown) => void',
  'address, done, fs, options, point, server, settled, started': 'any',
  backend: `import('resilient-watcher/testing').ScriptedBackend`,
  Client: `typeof import('@grpc/grpc-js').Client`,
  'client, registry': `any`,
  clock: `import('resilient-watcher/testing').FakeClock`,
  components: `readonly ${OBJECTS.watcher}[]`,
  createServer: `typeof import('node:https').createServer`,
  ignore: 'readonly RegExp[]',
  kubeConfig: `import('@kubernetes/client-node').KubeConfig`,
  level: `'info'`,
  logger: 'Console',
  'other, shop': OBJECTS.files,
  request: `import('node:http').IncomingMessage`,
  saved: `import('resilient-watcher').Digests`,
  signer: `import('@resilient-watcher/local-api-server').CertificateSigner`,
};

const declarations = [
  'interface Config { a: { b: string }; db: { host: string }; db_host: string; DB_HOST: string }',
  'interface Service { config: typeof loader }',
  ...Object.entries({ ...OBJECTS, ...NAMES }).flatMap(([names, type]) =>
    names.split(', ').map((name) => `declare const ${name}: ${type};`),
  ),
].join(' ');

/** What is exported, and from where. */
const exported = new Map<string, string>();
for (const { specifier } of packages.flatMap(({ entryPoints }) => entryPoints)) {
  if (specifier === 'resilient-watcher/trust') continue; // It changes the process that imports it.
  const names = Object.keys((await import(specifier)) as object);
  for (const name of names) exported.set(name, specifier);
}

const name = String.raw`(?<![\w/'-]|(?<!\.)\.)(?:${[...exported.keys()].join('|')})`;
const expression = new RegExp(
  String.raw`${name}\((?!\))|(?<![\w./-])(?:this\.config|${Object.keys(OBJECTS).join('|')})\.`,
);

/** The expressions of a page, each as a block of one line. */
export function inlineExpressions(page: string, text = textOf(page)): CodeBlock[] {
  let isInBlock = false;
  return text.split('\n').flatMap((line, index) => {
    if (/^ *```/.test(line)) isInBlock = !isInBlock;
    return Array.from(isInBlock ? [] : line.matchAll(/`([^`]+)`/g), ([, code = '']) => code)
      .filter((code) => expression.test(code) && !code.includes('…'))
      .map((code) => ({
        page,
        language: 'ts',
        output: undefined,
        notRun: undefined,
        code: compilable(code),
        line: index + 1,
      }));
  });
}

function compilable(code: string): string {
  const imports = Array.from(
    new Set(code.match(new RegExp(String.raw`${name}\b`, 'g'))),
    (used) => `import { ${used} } from '${exported.get(used)}';`,
  );
  // An object would be a block.
  const statement = /^(?:\{|\.\.\.)/.test(code) ? `void [${code}]` : code;
  return `${imports.join(' ')} ${declarations} export async function expression(this: Service) { ${statement} }`;
}
