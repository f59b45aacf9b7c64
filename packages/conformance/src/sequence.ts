import type { Requirement } from './requirement.js';
import type { Stage } from './stage.js';

/** The groups of sequences, which are the columns of a report. */
export const GROUPS = {
  volume: 'Key of a ConfigMap volume',
  secret: 'Key of a Secret on tmpfs',
  token: 'Projected token',
  certificate: 'Pod certificate',
  file: 'Plain file or link',
  process: 'Process that was stopped',
  limits: 'inotify at its limits',
  user: 'Reader without root',
} as const;

export type GroupName = keyof typeof GROUPS;

/** Publications in the order and with the system calls of an existing publisher. */
export interface Sequence {
  /** Unique, in lowercase with hyphens. */
  readonly name: string;
  /** One sentence: what happens, and what it stands for. */
  readonly says: string;
  /** How long a state may take to be seen, ms, unless the command line says otherwise. Default 5 s. */
  readonly deadlineMs?: number;
  /** What the machine must have or allow for it. */
  readonly needs?: readonly Requirement[];
  /** Where its files are. Default: the temporary directory of the system. */
  readonly parent?: string;
  /** Turns a text, different each time, into contents. Default: the text. */
  readonly contentOf?: (text: string) => string;
  /** Starts the program, publishes, and resolves when the last state has been shown or its time is over. */
  readonly run: (stage: Stage) => Promise<void>;
}

/** The default of {@link Sequence.deadlineMs}: five rounds of a program that polls each second. */
export const DEADLINE_MS = 5_000;
