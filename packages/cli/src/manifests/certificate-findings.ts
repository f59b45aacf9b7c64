/** Finds problems with the pod certificates in a manifest. */
import { list, sourcesOf, text, type Fields } from './fields.js';
import { finding, type Finding } from './finding.js';
import { READ_ONCE } from './trust-findings.js';

/** The default of `maxExpirationSeconds`; the API server stores it. */
const DAY_SECONDS = 86_400;

/** Keys and chains in separate files, and programs that outlive a certificate of the default lifetime. */
export function certificateFindings(
  volumes: ReadonlyMap<string, Fields>,
  containers: readonly Fields[],
  where: string,
): Finding[] {
  return [...volumes].flatMap(([name, volume]) => {
    const certificates = sourcesOf(volume, 'podCertificate');
    const isShort = certificates.some(
      ({ maxExpirationSeconds: seconds = DAY_SECONDS }) => seconds === DAY_SECONDS,
    );
    return [
      ...certificates
        .filter((certificate) => text(certificate['keyType']) === '')
        .map(() => finding('KEY_TYPE', `${where}: the certificate in volume ${name} has no keyType`)),
      ...certificates
        .filter((certificate) => 'keyPath' in certificate && 'certificateChainPath' in certificate)
        .map(() =>
          finding(
            'SPLIT_CERTIFICATE',
            `${where}: volume ${name} has the key and the chain in separate files`,
          ),
        ),
      ...(isShort ? containers.flatMap((container) => readers(container, name, where)) : []),
    ];
  });
}

/** The first variable of a container that names a file of the volume, which most programs read only once. */
function readers(container: Fields, volume: string, where: string): Finding[] {
  const mounts = list(container['volumeMounts'])
    .filter((mount) => text(mount['name']) === volume && text(mount['mountPath']) !== '')
    .map((mount) => `${text(mount['mountPath']).replace(/\/$/, '')}/`);
  const variable = list(container['env']).find(
    ({ name, value }) =>
      // This library follows the files that it reads.
      !text(name).startsWith('RESILIENT_WATCHER_') &&
      !READ_ONCE.includes(text(name)) &&
      mounts.some((mount) => text(value).startsWith(mount)),
  );
  if (variable === undefined) return [];
  const place = `${where}: ${text(variable['name'])} of container ${text(container['name'])}`;
  return [
    finding(
      'SHORT_CERTIFICATE',
      `${place} names a file of volume ${volume}, whose certificate is valid for 24 hours by default`,
    ),
  ];
}
