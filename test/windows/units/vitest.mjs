/**
 * What the unit tests of some folders use of `vitest`, which does not run on Wine: its own `expect` and spies, and a runner that
 * runs one test after another.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { format } from 'node:util';

import {
  addCustomEqualityTesters,
  chai,
  getState,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect';
import { fn, restoreAllMocks, spyOn } from '@vitest/spy';

const LIMIT_MS = Number(process.env.TEST_LIMIT_MS ?? 60_000);

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

export const expect = Object.assign((value, message) => chai.expect(value, message), chai.expect, {
  getState: () => getState(expect),
  setState: (state) => setState(state, expect),
  addEqualityTesters: addCustomEqualityTesters,
  unreachable: (message) => chai.assert.fail(message ?? 'expect.unreachable'),
  poll: (read, { timeout = LIMIT_MS, interval = 5 } = {}) => polled(read, timeout, interval),
});
setState({ assertionCalls: 0, isExpectingAssertions: false, expectedAssertionsNumber: null }, expect);

function polled(read, timeout, interval, isNot = false) {
  return new Proxy(
    {},
    {
      get: (_, matcher) => {
        if (matcher === 'not') return polled(read, timeout, interval, !isNot);
        return (...args) =>
          vi.waitFor(
            async () => {
              const asserted = expect(await read());
              return (isNot ? asserted.not : asserted)[matcher](...args);
            },
            { timeout, interval },
          );
      },
    },
  );
}

const stubbed = new Map();

export const TestRunner = { getCurrentTest: () => running.getStore() };

export const vi = {
  fn,
  spyOn,
  restoreAllMocks,
  async waitFor(work, { timeout = LIMIT_MS, interval = 5 } = {}) {
    for (const end = performance.now() + timeout; ;) {
      try {
        return await work();
      } catch (error) {
        if (performance.now() > end) throw error;
        await new Promise((resolve) => setTimeout(resolve, interval));
      }
    }
  },
  stubEnv(name, value) {
    if (!stubbed.has(name)) stubbed.set(name, process.env[name]);
    process.env[name] = value;
  },
  unstubAllEnvs() {
    for (const [name, value] of stubbed) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    stubbed.clear();
  },
};

const newSuite = (name, parent) => ({
  name,
  parent,
  tests: [],
  before: [],
  after: [],
  beforeEach: [],
  afterEach: [],
});
let suite = newSuite('');
const running = new AsyncLocalStorage();

const add = (name, ...rest) => {
  const run = rest.find((each) => typeof each === 'function');
  suite.tests.push({ name: String(name?.name ?? name), run, suite });
};
const skipped = (name) => suite.tests.push({ name: String(name), suite });
const group = (name, ...rest) => {
  suite = newSuite(`${suite.name}${name} > `, suite);
  rest.find((each) => typeof each === 'function')();
  suite.parent.tests.push(...suite.tests);
  suite = suite.parent;
};

const named = (name, args) =>
  format(
    name.replace(/\$(\w+)/g, (all, key) => (args[0]?.[key] === undefined ? all : String(args[0][key]))),
    ...args.slice(0, name.split(/%[sdifjoO]/).length - 1),
  );

const withVariants = (call) => {
  const isObject = (row) => (Array.isArray(row) ? row : [row]);
  return Object.assign(call, {
    skip: skipped,
    concurrent: call,
    skipIf: (isSkipped) => (isSkipped ? noVariants : call),
    runIf: (isRun) => (isRun ? call : noVariants),
    each:
      (rows) =>
      (name, ...rest) => {
        const run = rest.find((each) => typeof each === 'function');
        for (const row of rows) call(named(name, isObject(row)), () => run(...isObject(row)));
      },
  });
};
const noVariants = Object.assign(skipped, { each: (rows) => (name) => rows.forEach(() => skipped(name)) });

export const test = withVariants(add);
export const it = test;
export const describe = withVariants(group);
export const beforeAll = (work) => suite.before.push(work);
export const afterAll = (work) => suite.after.push(work);
export const beforeEach = (work) => suite.beforeEach.push(work);
export const afterEach = (work) => suite.afterEach.push(work);
export const onTestFinished = (work) => running.getStore().finished.push(work);
export const onTestFailed = (work) => running.getStore().failed.push(work);
export const expectTypeOf = () => new Proxy(() => expectTypeOf(), { get: () => expectTypeOf() });

const suitesOf = (inner) => (inner ? [...suitesOf(inner.parent), inner] : []);

async function runTest({ run, suite: own }) {
  const context = {
    skip: (reason) => {
      const skipped = Object.assign(new Error(typeof reason === 'string' ? reason : ''), { isSkipped: true });
      // Also if something catches it.
      running.getStore().skipped ??= skipped;
      throw skipped;
    },
  };
  const state = { context, finished: [], failed: [] };
  await running.run(state, async () => {
    const suites = suitesOf(own);
    try {
      for (const each of suites.flatMap((one) => one.beforeEach)) await each(context);
      let timer;
      const limit = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not done after ${LIMIT_MS} ms`)), LIMIT_MS);
      });
      await Promise.race([(async () => run(context))(), limit]).finally(() => clearTimeout(timer));
    } catch (error) {
      for (const each of state.failed) await each({});
      throw state.skipped ?? error;
    } finally {
      for (const each of suites.reverse().flatMap((one) => one.afterEach)) await each(context);
      for (const each of state.finished.reverse()) await each();
    }
  });
}

/** How many tests were skipped for each reason. */
export const reasons = new Map();

/** Runs the tests that files have added since the last call. Returns how many passed, were skipped, and failed. */
export async function runAll(file) {
  const all = suite;
  suite = newSuite('');
  const counts = { passed: 0, skipped: 0, failed: 0 };
  const suites = new Set(all.tests.flatMap(({ suite: own }) => suitesOf(own)));
  suites.add(all);
  for (const { before } of suites) for (const each of before) await each();
  for (const one of all.tests) {
    const error = one.run
      ? await runTest(one).then(
          () => undefined,
          (reason) => reason,
        )
      : { isSkipped: true };
    if (error === undefined) counts.passed += 1;
    else if (error.isSkipped) {
      counts.skipped += 1;
      if (error.message) reasons.set(error.message, (reasons.get(error.message) ?? 0) + 1);
    } else {
      counts.failed += 1;
      console.log(`FAILED: ${file} > ${one.suite.name}${one.name}\n${error?.stack ?? error}`);
    }
  }
  for (const { after } of suites) for (const each of after) await each();
  return counts;
}
