/**
 * Awaits a secret and nothing else, and prints it, or the code of the error.
 *
 *     node await-secret.mjs PATH get|ready
 */
import { SecretFile } from 'resilient-watcher';

const [path, method] = process.argv.slice(2);
const secret = new SecretFile(path, { persistent: false });
secret.on('rejected', () => console.log('waiting'));
try {
  console.log((await secret[method]()).value);
} catch (error) {
  console.log(error.code);
}
