/** All sequences, by group. */
import { GROUPS, type GroupName, type Sequence } from './sequence.js';
import { fileSequences } from './sequences/file.js';
import { limitSequences, processSequences, userSequences } from './sequences/machine.js';
import { certificateSequences, secretSequences, tokenSequences } from './sequences/secret.js';
import { volumeSequences } from './sequences/volume.js';

/** A sequence with its group. */
export type GroupedSequence = Sequence & { readonly group: GroupName };

const TABLE: Readonly<Record<GroupName, readonly Sequence[]>> = {
  volume: volumeSequences,
  secret: secretSequences,
  token: tokenSequences,
  certificate: certificateSequences,
  file: fileSequences,
  process: processSequences,
  limits: limitSequences,
  user: userSequences,
};

export const SEQUENCES: readonly GroupedSequence[] = (Object.keys(GROUPS) as GroupName[]).flatMap((group) =>
  TABLE[group].map((sequence) => ({ ...sequence, group })),
);

/** The sequences with one of these names, or in one of these groups; all if no name is given. */
export function chosen(names: readonly string[]): readonly GroupedSequence[] {
  if (names.length === 0) return SEQUENCES;
  return SEQUENCES.filter(({ name, group }) => names.includes(name) || names.includes(group));
}
