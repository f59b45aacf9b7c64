/**
 * The watchers that are compared, each as it is by default and in the best configuration that its documentation has for
 * files which are replaced. `groups`: what it is made for; all without. `advice`: what its users can do about what is left
 * with the best configuration. `node`: the Node.js that it needs, 22_022 for 22.22. `install`: what is not installed with this
 * repository, for `npm install --no-save`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
export const build = join(folder, '.build');
/** Packages of npm that are binaries. */
export const runtimes = { node: '24.21.0', bun: '1.4.5', deno: '2.9.6' };
export const runtime = (name) => join(build, 'runtimes', runtimes[name], 'node_modules/.bin', name);

/** Of the system. */
export const inotifyTools = '3.22.6.0';

const volumes = ['volume', 'secret', 'token', 'certificate', 'process', 'limits', 'user'];

/** The configuration comes before the paths, of which the suite may give several. */
const script = (name, configuration) => [
  join(folder, 'contestants/node', `${name}.mjs`),
  configuration,
  '{path}',
];
const node = (name, configuration) => ['node', ...script(name, configuration)];
const bun = (configuration) => [runtime('bun'), ...script('fs-watch', configuration)];
const deno = (configuration) => [
  ...[runtime('deno'), 'run', '--quiet', '--no-config', '--allow-all'],
  ...script('deno-watch-fs', configuration),
];
const go = (library, configuration) => [join(build, 'go'), library, configuration, '{path}'];
const rust = (library, configuration) => [
  join(build, 'rust/release/conformance'),
  library,
  configuration,
  '{path}',
];
const python = (name, configuration) => [
  join(build, 'python/bin/python3'),
  join(folder, 'contestants/python', `${name}_adapter.py`),
  configuration,
  '{path}',
];
const bash = (configuration) => [
  'bash',
  join(folder, `contestants/bash/${configuration === 'corrected' ? configuration : 'inotifywait'}.sh`),
  configuration,
  '{path}',
];
const java = (configuration) => ['java', '-cp', join(build, 'java'), 'Watch', configuration, '{path}'];

const text = (file) => readFileSync(new URL(file, import.meta.url), 'utf8');
const { packages } = JSON.parse(text('../../package-lock.json'));
const ofNode = (name) => packages[`node_modules/${name}`].version;
const ofGo = (module) => text('contestants/go/go.mod').match(new RegExp(`${module} v(\\S+)`))[1];
const ofRust = (crate) =>
  text('contestants/rust/Cargo.toml').match(new RegExp(`^${crate} = "=?(.+)"`, 'm'))[1];
const ofPython = (name) =>
  text('contestants/python/requirements.txt').match(new RegExp(`^${name}==(.+)$`, 'm'))[1];

/** The third configuration of the programs of packages/conformance/docs/conformance.md. */
const corrected = 'on its directory, a read each second as well, and contents that were read twice';

/** What is better, if there is a row for it. */
function adviceOf(configuration, how) {
  const better = how.corrected ? 'corrected' : 'best';
  if (!how[better] || configuration === better) return {};
  return { advice: `${how.corrected ? 'Use' : 'Configure'} it as in its ${better} row: ${how[better]}.` };
}

/** One row for each configuration; `default` and `best` say what it is. */
const entry = (language, name, version, command, how, rest) =>
  Object.entries(how).map(([configuration, says]) => ({
    ...{ language, name, version, configuration, says, ...rest },
    ...adviceOf(configuration, how),
    command: command(configuration),
  }));

export default [
  ...entry(
    'Node',
    'resilient-watcher',
    JSON.parse(text('../../package.json')).version,
    (configuration) => node('resilient-watcher', configuration),
    { default: 'no options' },
    { mustBePerfect: true, advice: 'Report it: it is a fault.' },
  ),
  ...entry(
    'Node',
    'reference reader',
    '',
    (configuration) => node('poll', configuration),
    { default: 'reads every 50 ms, and believes what it has read twice' },
    { mustBePerfect: true, advice: 'Nothing: it shows that the suite can be passed.' },
  ),
  ...entry(
    'Node',
    'fs.watch',
    runtimes.node,
    (configuration) => node('fs-watch', configuration),
    { default: 'on the file', best: 'on its directory, reading at every event' },
    {
      advice:
        'Wait until the directory exists, and catch the errors of `watch`. Read every few seconds as well: when the directory is replaced, or a link in its path turns, there is no event. Read once more after 50 ms, when the writer has finished.',
    },
  ),
  ...entry(
    'Node',
    'fs.watchFile',
    runtimes.node,
    (configuration) => node('fs-watch-file', configuration),
    { default: 'every 5,007 ms', best: 'every 500 ms' },
    {
      advice: 'Read the file twice if it may be written in place.',
    },
  ),
  // Version 6 needs a newer Node.js than this repository.
  ...[
    { major: 5, module: 'chokidar', version: ofNode('chokidar') },
    { major: 6, module: 'chokidar-6', version: '6.0.0' },
  ].flatMap(({ major, module, version }) =>
    entry(
      'Node',
      `chokidar ${major}`,
      version,
      (configuration) => node('chokidar', `${module} ${configuration}`),
      {
        default: 'on the file',
        directory: 'on its directory',
        best: 'polling with `awaitWriteFinish`, on its directory',
      },
      {
        ...(major === 6 && { node: 22_022, install: 'chokidar-6@npm:chokidar@6.0.0' }),
        advice: 'Wait until the directory exists, start again when it was replaced, and listen to `error`.',
      },
    ),
  ),
  ...entry(
    'Node',
    '@parcel/watcher',
    ofNode('@parcel/watcher'),
    (configuration) => node('parcel', configuration),
    { default: 'on the directory, the only one there is' },
    {
      advice:
        'Wait until the directory exists, subscribe to its real path, catch the errors, and read every few seconds as well.',
    },
  ),
  ...entry(
    'Node',
    'watchpack',
    ofNode('watchpack'),
    (configuration) => node('watchpack', configuration),
    { default: 'on the file', best: '`followSymlinks`, `poll: 200`' },
    { advice: 'Wait until the file exists before you watch it, and read every few seconds as well.' },
  ),
  ...entry(
    'Bun',
    "Bun's fs.watch",
    runtimes.bun,
    bun,
    { default: 'on the file', best: 'on its directory, reading at every event' },
    { advice: 'As with `fs.watch` of Node.js.' },
  ),
  ...entry(
    'Deno',
    'Deno.watchFs',
    runtimes.deno,
    deno,
    { default: 'on the file', best: 'on its directory, reading at every event' },
    { advice: 'As with `fs.watch` of Node.js.' },
  ),
  ...entry(
    'Go',
    'fsnotify',
    ofGo('github.com/fsnotify/fsnotify'),
    (configuration) => go(configuration === 'corrected' ? configuration : 'fsnotify', configuration),
    { default: 'on the file', best: 'on its directory, as its README advises', corrected },
    {
      advice:
        'Wait until the directory exists, and poll if no watch is to be had. Read on a timer as well: when the directory is replaced, or a link in its path turns, there is no event. Have the file replaced, not written in place.',
    },
  ),
  ...entry(
    'Go',
    'viper',
    ofGo('github.com/spf13/viper'),
    (configuration) => go('viper', configuration),
    { default: '`WatchConfig`, which has no options' },
    {
      advice:
        'Call `ReadInConfig` on a timer as well. When the watch has ended, only a new process has one again.',
    },
  ),
  ...entry(
    'Go',
    'koanf file provider',
    ofGo('github.com/knadh/koanf/providers/file'),
    (configuration) => go('koanf', configuration),
    { default: '`Watch`', best: '`Watch` again after each error, with a new provider' },
    {
      advice:
        'Read on a timer as well: when a directory or a link above the file is replaced, there is no event. Have the file replaced, not written in place.',
    },
  ),
  ...entry(
    'Go',
    'controller-runtime certwatcher',
    ofGo('sigs.k8s.io/controller-runtime'),
    (configuration) => go('certwatcher', configuration),
    { default: 'polls every 10 s beside its events', best: '`WithWatchInterval(time.Second)`' },
    { groups: ['certificate'], advice: 'Set a shorter interval.' },
  ),
  ...entry(
    'Go',
    'the rule of configmap-reload',
    ofGo('github.com/fsnotify/fsnotify'),
    (configuration) => go('configmap-reload', configuration),
    { default: 'fsnotify on the directory, events of `..data` only' },
    {
      groups: volumes,
      advice:
        'Restart it with a liveness probe: it does not notice that its directory was replaced, and has no timer.',
    },
  ),
  ...entry(
    'Python',
    'watchfiles',
    ofPython('watchfiles'),
    (configuration) => python('watchfiles', configuration),
    { default: 'on the file', best: '`force_polling`, on the directory' },
    {
      advice:
        'Wait until the directory exists, call `watch` again when it raises, and read on a timer as well.',
    },
  ),
  ...entry(
    'Python',
    'watchdog',
    ofPython('watchdog'),
    (configuration) => python(configuration === 'corrected' ? configuration : 'watchdog', configuration),
    { default: '`Observer` on the directory', best: '`PollingObserver` on the directory', corrected },
    {
      advice:
        'Wait until the directory exists, schedule again when it was replaced, and read on a timer as well.',
    },
  ),
  ...entry(
    'Rust',
    'notify',
    ofRust('notify'),
    (configuration) => rust('notify', configuration),
    {
      default: '`RecommendedWatcher` on the file',
      best: '`PollWatcher` with `compare_contents`, on the directory',
      corrected,
    },
    { advice: 'Wait until the directory exists before you watch it.' },
  ),
  ...entry(
    'Rust',
    'notify-debouncer-full',
    ofRust('notify-debouncer-full'),
    (configuration) => rust('debouncer', configuration),
    { default: 'on the file, 2 s as in its example', best: 'on the directory, 100 ms' },
    {
      advice: 'Wait until the directory exists, poll if no watch is to be had, and read on a timer as well.',
    },
  ),
  ...entry(
    'Bash',
    'inotifywait',
    inotifyTools,
    bash,
    { default: 'on the file', best: 'on its directory', corrected },
    {
      advice:
        'Wait until the directory exists, and read on a timer as well: when the directory is replaced, or a link in its path turns, there is no event.',
    },
  ),
  ...entry(
    'Java',
    'WatchService',
    'JDK',
    java,
    { default: 'on the directory, reading at every event', best: 'the same, and a read every second' },
    {
      advice:
        'Wait until the directory exists, and read on a timer if no watch is to be had. Have the file replaced, not written in place.',
    },
  ),
];
