/** Finds trust bundles that stay empty, and programs that read a bundle only once. */
import { list, sourcesOf, text, type Fields } from './fields.js';
import { finding, type Finding } from './finding.js';

/** Variables of Node.js and OpenSSL that name a bundle of CAs, which is read at the start. */
export const READ_ONCE: readonly string[] = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'];

/** Problems with the trust bundles in the volumes, and with the variables that name one. */
export function trustFindings(
  volumes: ReadonlyMap<string, Fields>,
  containers: readonly Fields[],
  isReplaced: (volume: Fields) => boolean,
  where: string,
): Finding[] {
  const mountOf = (container: Fields, path: string): Fields | undefined =>
    list(container['volumeMounts']).find((mount) => {
      const point = text(mount['mountPath']).replace(/\/$/, '');
      return point !== '' && `${path}/`.startsWith(`${point}/`);
    });
  return [
    ...[...volumes].flatMap(([name, volume]) => selectors(volume, `${where}: volume ${name}`)),
    ...containers.flatMap((container) =>
      list(container['env']).flatMap((variable): Finding[] => {
        const [name, path] = [text(variable['name']), text(variable['value'])];
        if (path === '') return [];
        const place = `${where}: ${name} of container ${text(container['name'])}`;
        const mount = mountOf(container, path);
        if (name === 'RESILIENT_WATCHER_CA' && !mount) {
          return [finding('CA_PATH', `${place} names ${path}, which is in no mount`)];
        }
        const volume = mount && volumes.get(text(mount['name']));
        return READ_ONCE.includes(name) && volume && isReplaced(volume)
          ? [finding('CA_READ_ONCE', `${place} names a file of volume ${text(mount['name'])}`)]
          : [];
      }),
    ),
  ];
}

/** A bundle is chosen by its name, or by its signer and a selector; without a selector, nothing is chosen. */
function selectors(volume: Fields, place: string): Finding[] {
  return sourcesOf(volume, 'clusterTrustBundle').flatMap((bundle): Finding[] => {
    const path = text(bundle['path']);
    if ('name' in bundle && 'signerName' in bundle) {
      return [
        finding('TRUST_SELECTOR', `${place}: the trust bundle ${path} has both a name and a signerName`),
      ];
    }
    return 'signerName' in bundle && !('labelSelector' in bundle)
      ? [
          finding(
            'TRUST_SELECTOR',
            `${place}: the trust bundle ${path} has a signerName and no labelSelector`,
          ),
        ]
      : [];
  });
}
