/** The process of one contestant: records its reports with their times, and sends them to the parent at the end. */
import { readFileSync } from 'node:fs';

import contestants from './contestants.mjs';

const now = () => Number(process.hrtime.bigint());
const sequenceOf = (content) => Number(/^sequence: (\d+)\n/.exec(content.toString('latin1'))?.[1] ?? NaN);

const seen = [];
let callbacks = 0;
let idle = 0;
let last;
let stop;
let cpuAtStart;

function report(content) {
  const at = now();
  callbacks += 1;
  if (last !== undefined && last.equals(content)) {
    idle += 1;
    return;
  }
  last = content;
  seen.push([sequenceOf(content), at]);
}

function onEvent(path) {
  try {
    report(readFileSync(path));
  } catch {
    callbacks += 1; // in the middle of something: there was nothing to read
    idle += 1;
  }
}

const commands = {
  async start({ contestant, path, directory }) {
    last = readFileSync(path);
    const started = await contestants[contestant](path, directory, () => onEvent(path), report);
    if (typeof started === 'string') return started;
    stop = started;
    callbacks = idle = 0;
    seen.length = 0;
    cpuAtStart = process.cpuUsage();
  },

  async stop() {
    const { user, system } = process.cpuUsage(cpuAtStart);
    await stop();
    return { seen, callbacks, idle, cpuMs: (user + system) / 1e3 };
  },
};

process.on('message', async ({ command, ...parameters }) => {
  process.send((await commands[command](parameters)) ?? null);
});
