/** What processes use: CPU time and system calls. */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { once } from 'node:events';

/** The CPU time of all threads of these processes that still run, ms. */
export function cpuMs(processes: readonly string[]): number {
  return processes.flatMap(threadsOf).reduce((sum, ms) => sum + ms, 0);
}

function threadsOf(pid: string): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => {
      const [ns] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
      return Number(ns) / 1e6;
    });
  } catch {
    return []; // it has ended
  }
}

/** Why system calls cannot be counted here; undefined if they can. */
export function withoutTracer(): string | undefined {
  const { status } = spawnSync('strace', ['-c', '-o', '/dev/null', 'true'], { stdio: 'ignore' });
  return status === 0 ? undefined : 'strace is not there, or may not trace';
}

/** The number of system calls that these processes make while `act` runs. */
export async function callsDuring(processes: readonly string[], act: () => Promise<void>): Promise<number> {
  const tracer = spawn('strace', ['-f', '-c', ...processes.flatMap((pid) => ['-p', pid])], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  tracer.stderr.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  // It says so for each process that it has attached to.
  if (!output.includes('attached')) await once(tracer.stderr, 'data');
  try {
    await act();
  } finally {
    tracer.kill('SIGINT');
    await once(tracer, 'close');
  }
  const total = /^ *100\.00 +[\d.]+ +\d+ +(\d+) .*total$/m.exec(output)?.[1];
  return Number(total ?? 0);
}
