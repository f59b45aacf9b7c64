/** Finds trust bundles that stay empty, and programs that read a bundle only once. */
import { isReplaced, list, sourcesOf, text, type Fields, type Pod } from './fields.js';
import { finding, type Finding } from './finding.js';

/** Variables of Node.js and OpenSSL that name a bundle of CAs, which is read at the start. */
export const READ_ONCE: readonly string[] = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'];

/** Problems with the trust bundles in the volumes, and with the variables that name one. */
export function* trustFindings({ where, volumes, containers }: Pod): Iterable<Finding> {
  for (const [name, volume] of volumes) yield* selectors(volume, `${where}: volume ${name}`);
  for (const container of containers) {
    for (const variable of list(container['env'])) {
      const [name, path] = [text(variable['name']), text(variable['value'])];
      if (path === '') continue;
      const place = `${where}: ${name} of container ${text(container['name'])}`;
      const mount = mountOf(container, path);
      if (name === 'RESILIENT_WATCHER_CA' && !mount)
        yield finding('CA_PATH', `${place} names ${path}, which is in no mount`);
      const volume = mount && volumes.get(text(mount['name']));
      if (READ_ONCE.includes(name) && volume && isReplaced(volume))
        yield finding('CA_READ_ONCE', `${place} names a file of volume ${text(mount['name'])}`);
    }
  }
}

/** The mount of a container that a path leads through. */
function mountOf(container: Fields, path: string): Fields | undefined {
  return list(container['volumeMounts']).find((mount) => {
    const point = text(mount['mountPath']).replace(/\/$/, '');
    return point !== '' && `${path}/`.startsWith(`${point}/`);
  });
}

/** A bundle is chosen by its name, or by its signer and a selector; without a selector, nothing is chosen. */
function* selectors(volume: Fields, place: string): Iterable<Finding> {
  for (const bundle of sourcesOf(volume, 'clusterTrustBundle')) {
    if (!('signerName' in bundle)) continue;
    const what = `${place}: the trust bundle ${text(bundle['path'])} has`;
    if ('name' in bundle) yield finding('TRUST_SELECTOR', `${what} both a name and a signerName`);
    else if (!('labelSelector' in bundle))
      yield finding('TRUST_SELECTOR', `${what} a signerName and no labelSelector`);
  }
}
