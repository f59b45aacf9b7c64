import { absolutePath } from './absolute-path.js';
import { stableRead, type ReadingPorts } from './stable-read.js';
import { PathTarget } from './targets/path-target.js';

/**
 * The bytes of a file, all of them from one state of it, even if it is replaced while it is read.
 * @param maxBytes a larger file is refused.
 * @param failed creates the error to throw; `reason` completes "Cannot read …: ".
 */
export async function readFile(
  path: string,
  maxBytes: number,
  ports: ReadingPorts,
  failed: (reason: string, cause?: unknown) => Error,
): Promise<Buffer> {
  // If the path is a directory, nothing in it is read.
  const limits = { maxContentBytes: maxBytes, maxTotalBytes: maxBytes, maxFiles: 0 };
  const target = new PathTarget(absolutePath(path), limits);
  const snapshot = await stableRead(target, ports).catch((cause: unknown) => {
    throw failed(cause instanceof Error ? cause.message : String(cause), cause);
  });
  if (snapshot.kind === 'missing') throw failed('it does not exist');
  if (snapshot.kind !== 'file') throw failed('it is a directory');
  if (snapshot.content) return snapshot.content;
  throw failed(`it has ${snapshot.size} bytes, more than the limit of ${maxBytes}`);
}
