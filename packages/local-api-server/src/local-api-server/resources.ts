/**
 * The resources of the server: those of Kubernetes that are listed here, those of a definition, and any other by its
 * path.
 */
import type { ObjectStore } from './object-store.js';

/** A resource of one version. */
export interface Resource {
  /** As kubectl writes it: `configmaps`, `leases.v1.coordination.k8s.io`. */
  readonly name: string;
  /** Empty: the core. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** Whether `status` is a subresource. */
  readonly hasStatus: boolean;
  readonly isCustom: boolean;
}

/** `plural Kind`, then `cluster` if it is in no namespace, and `status` if that is a subresource. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  v1: [
    'configmaps ConfigMap',
    'endpoints Endpoints',
    'events Event',
    'namespaces Namespace cluster status',
    'nodes Node cluster status',
    'persistentvolumeclaims PersistentVolumeClaim status',
    'persistentvolumes PersistentVolume cluster status',
    'pods Pod status',
    'secrets Secret',
    'serviceaccounts ServiceAccount',
    'services Service status',
  ],
  'admissionregistration.k8s.io/v1': [
    'mutatingwebhookconfigurations MutatingWebhookConfiguration cluster',
    'validatingwebhookconfigurations ValidatingWebhookConfiguration cluster',
  ],
  'apiextensions.k8s.io/v1': ['customresourcedefinitions CustomResourceDefinition cluster status'],
  'apps/v1': [
    'daemonsets DaemonSet status',
    'deployments Deployment status',
    'replicasets ReplicaSet status',
    'statefulsets StatefulSet status',
  ],
  'batch/v1': ['cronjobs CronJob status', 'jobs Job status'],
  'certificates.k8s.io/v1': [
    'clustertrustbundles ClusterTrustBundle cluster',
    'podcertificaterequests PodCertificateRequest status',
  ],
  'coordination.k8s.io/v1': ['leases Lease'],
  'discovery.k8s.io/v1': ['endpointslices EndpointSlice'],
  'events.k8s.io/v1': ['events Event'],
  'networking.k8s.io/v1': ['ingresses Ingress status', 'networkpolicies NetworkPolicy'],
  'policy/v1': ['poddisruptionbudgets PodDisruptionBudget status'],
  'rbac.authorization.k8s.io/v1': [
    'clusterrolebindings ClusterRoleBinding cluster',
    'clusterroles ClusterRole cluster',
    'rolebindings RoleBinding',
    'roles Role',
  ],
};

const known: readonly Resource[] = Object.entries(KNOWN).flatMap(([groupVersion, lines]) => {
  const [version = '', group = ''] = groupVersion.split('/').reverse();
  return lines.map((line) => {
    const [plural = '', kind = '', ...words] = line.split(' ');
    return {
      name: nameOf(group, version, plural),
      group,
      version,
      plural,
      kind,
      isNamespaced: !words.includes('cluster'),
      hasStatus: words.includes('status'),
      isCustom: false,
    };
  });
});

function nameOf(group: string, version: string, plural: string): string {
  return group === '' && version === 'v1' ? plural : `${plural}.${version}${group && `.${group}`}`;
}

/** The group and version as in `apiVersion`. */
export function apiVersionOf({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The part of a CustomResourceDefinition that is used here. */
interface Definition {
  readonly group: string;
  readonly names: { readonly plural: string; readonly kind: string };
  readonly scope: string;
  readonly versions?: readonly {
    readonly name: string;
    readonly subresources?: { readonly status?: object };
  }[];
}

/** Those of the custom resources whose definitions are in the store. */
function defined(store: ObjectStore): readonly Resource[] {
  return store.list('customresourcedefinitions.v1.apiextensions.k8s.io').flatMap(({ spec }) => {
    const { group, names, scope, versions = [] } = spec as Definition;
    return versions.map(({ name: version, subresources }) => ({
      ...names,
      name: nameOf(group, version, names.plural),
      group,
      version,
      isNamespaced: scope === 'Namespaced',
      hasStatus: subresources?.status !== undefined,
      isCustom: true,
    }));
  });
}

/** All that have a kind, for discovery. */
export function listedResources(store: ObjectStore): readonly Resource[] {
  return [...known, ...defined(store)];
}

/**
 * A resource by its name or path. One that nobody has defined takes what its first object says, and until then a kind
 * that is guessed from its name.
 */
export function resourceOf(
  store: ObjectStore,
  group: string,
  version: string,
  plural: string,
  isNamespaced: boolean,
): Resource {
  const name = nameOf(group, version, plural);
  const found = listedResources(store).find((each) => each.name === name);
  if (found) return found;
  const singular = plural.replace(/ies$/, 'y').replace(/(?<=ss|x|ch|sh)es$|(?<!s)s$/, '');
  const kind = store.list(name)[0]?.['kind'] ?? `${singular.charAt(0).toUpperCase()}${singular.slice(1)}`;
  return {
    name,
    group,
    version,
    plural,
    kind: kind as string,
    isNamespaced,
    hasStatus: true,
    isCustom: true,
  };
}

/** The resource that a test names: `configmaps`, `widgets.v1.example.org`. @throws {TypeError} for another form */
export function resourceNamed(store: ObjectStore, name: string, isNamespaced: boolean): Resource {
  const [, plural, version = 'v1', group = ''] =
    /^([a-z\d]+)(?:\.(v\d\w*)(?:\.([a-z\d.-]+))?)?$/.exec(name) ?? [];
  if (plural === undefined) {
    throw new TypeError(
      `a resource is a plural, with version and group unless it is of the core v1: "configmaps", "leases.v1.coordination.k8s.io"; got "${name}"`,
    );
  }
  return resourceOf(store, group, version, plural, isNamespaced);
}
