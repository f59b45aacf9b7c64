import { execFile, spawnSync } from 'node:child_process';

interface CommandResult {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. The event loop goes on meanwhile: what it talks to may live in this process. */
export function run(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { env: { ...process.env, ...env } }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? undefined, stdout, stderr }),
    );
  });
}

/** Whether a program can be run here; says so on the console when not. */
export function isInstalled(file: string): boolean {
  const found = spawnSync(file, ['--help'], { stdio: 'ignore' }).error === undefined;
  if (!found) console.warn(`Skipped: ${file} is not installed`);
  return found;
}
