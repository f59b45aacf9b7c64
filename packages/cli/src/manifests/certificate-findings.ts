/** Finds problems with the pod certificates in a manifest. */
import { list, sourcesOf, text, type Fields, type Pod } from './fields.js';
import { finding, type Finding } from './finding.js';
import { READ_ONCE } from './trust-findings.js';

/** The default of `maxExpirationSeconds`; the API server stores it. */
const DAY_SECONDS = 86_400;

/** Keys and chains in separate files, and programs that outlive a certificate of the default lifetime. */
export function* certificateFindings({ where, volumes, containers }: Pod): Iterable<Finding> {
  for (const [name, volume] of volumes) {
    const certificates = sourcesOf(volume, 'podCertificate');
    for (const certificate of certificates) {
      if (text(certificate['keyType']) === '')
        yield finding('KEY_TYPE', `${where}: the certificate in volume ${name} has no keyType`);
    }
    for (const certificate of certificates) {
      if (!('keyPath' in certificate && 'certificateChainPath' in certificate)) continue;
      const what = `volume ${name} has the key and the chain in separate files`;
      yield finding('SPLIT_CERTIFICATE', `${where}: ${what}`);
    }
    const isShort = certificates.some(
      ({ maxExpirationSeconds: seconds = DAY_SECONDS }) => seconds === DAY_SECONDS,
    );
    for (const container of isShort ? containers : []) {
      const variable = readerOf(container, name);
      if (variable === undefined) continue;
      const place = `${where}: ${variable} of container ${text(container['name'])}`;
      const what = `names a file of volume ${name}, whose certificate is valid for 24 hours by default`;
      yield finding('SHORT_CERTIFICATE', `${place} ${what}`);
    }
  }
}

/** The first variable of a container that names a file of the volume, which most programs read only once. */
function readerOf(container: Fields, volume: string): string | undefined {
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
  return variable && text(variable['name']);
}
