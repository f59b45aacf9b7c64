/** The objects of the cluster test. Typed by the client, so that the compiler checks them. */
import type {
  V1ConfigMap,
  V1Container,
  V1Pod,
  V1Role,
  V1RoleBinding,
  V1Secret,
  V1ServiceAccount,
} from '@kubernetes/client-node';

export const UPDATES = 30;

/** Who watches what. `volume` groups those that see the same updates. */
export interface Observer {
  readonly name: string;
  readonly volume: 'config' | 'secret';
  readonly program: string;
  readonly target: string;
}

export const OBSERVERS: readonly Observer[] = [
  { name: 'library-configmap', volume: 'config', program: 'library', target: '/etc/config/app.yaml' },
  { name: 'library-subpath', volume: 'config', program: 'library', target: '/etc/single.yaml' },
  {
    name: 'library-group',
    volume: 'config',
    program: 'group',
    target: '/etc/config/app.yaml,/etc/secret/app.yaml',
  },
  { name: 'config-loader', volume: 'config', program: 'loader', target: '/etc/config/app.yaml' },
  { name: 'chokidar-file', volume: 'config', program: 'chokidar', target: '/etc/config/app.yaml' },
  {
    name: 'chokidar-directory',
    volume: 'config',
    program: 'chokidar-directory',
    target: '/etc/config/app.yaml',
  },
  { name: 'fs-watch-file', volume: 'config', program: 'fs.watch', target: '/etc/config/app.yaml' },
  {
    name: 'fs-watch-directory',
    volume: 'config',
    program: 'fs.watch-directory',
    target: '/etc/config/app.yaml',
  },
  { name: 'library-secret', volume: 'secret', program: 'library', target: '/etc/secret/app.yaml' },
  { name: 'chokidar-secret', volume: 'secret', program: 'chokidar', target: '/etc/secret/app.yaml' },
  { name: 'token-file', volume: 'config', program: 'token', target: '/var/run/secrets/tokens/token' },
  { name: 'token-refresher', volume: 'config', program: 'refresher', target: '/out/kubeconfig' },
];

/** Those that report numbers, and so have a row. */
export const NUMBERED = OBSERVERS.filter(({ program }) => program !== 'token' && program !== 'refresher');

/** Whether a loader must reject the update. */
export function isBadUpdate(update: number): boolean {
  return update > 0 && update % 10 === 0;
}

/** Whether the objects are written again before the update, with other labels and the same data. */
export function isAfterRewrite(update: number): boolean {
  return update % 5 === 0;
}

/** The contents of an update. Every tenth is a bad configuration; another key comes and goes. */
export function contentsOf(update: number): Record<string, string> {
  const limit = isBadUpdate(update) ? '"many"' : update * 10;
  return {
    'app.yaml': `update: ${update}\nlimit: ${limit}\n`,
    ...(update % 3 === 0 ? { 'extra.yaml': `since: ${update}\n` } : {}),
  };
}

/** Labels change the object, but nothing that is mounted. */
type Labels = Readonly<Record<string, string>>;

export function configMap(update: number, labels: Labels = {}): V1ConfigMap {
  const metadata = { name: 'config', labels: { ...labels } };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: contentsOf(update) };
}

export function secret(update: number, labels: Labels = {}): V1Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'secret', labels: { ...labels } },
    stringData: { 'app.yaml': `update: ${update}\n` },
  };
}

export const account: V1ServiceAccount = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'observer' },
};

export const role: V1Role = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'mint-own-token' },
  rules: [
    { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: ['observer'], verbs: ['create'] },
  ],
};

export const roleBinding: V1RoleBinding = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'mint-own-token' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'mint-own-token' },
  subjects: [{ kind: 'ServiceAccount', name: 'observer' }],
};

/** One pod with all observers, each a container, so that they share the volumes. */
export function observerPod(image: string, namespace: string, { hostNetwork = false } = {}): V1Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'observers' },
    spec: {
      serviceAccountName: 'observer',
      hostNetwork,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 5,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 },
      containers: [
        ...OBSERVERS.map((observer) => observerContainer(observer, image, namespace)),
        sidecar(image),
      ],
      volumes: [
        { name: 'config', configMap: { name: 'config' } },
        { name: 'secret', secret: { secretName: 'secret' } },
        {
          name: 'tokens',
          projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 600 } }] },
        },
        { name: 'out', emptyDir: {} },
      ],
    },
  };
}

export function observerContainer(
  { name, program, target }: Omit<Observer, 'volume'>,
  image: string,
  namespace: string,
): V1Container {
  return {
    ...containerOf(name, image),
    command: ['node', 'observe.mjs'],
    env: [
      { name: 'OBSERVE', value: program },
      { name: 'TARGET', value: target },
      { name: 'NAMESPACE', value: namespace },
    ],
  };
}

/** The program of the package as a sidecar: prints the names of the keys that changed. */
function sidecar(image: string): V1Container {
  const args = ['watch', '/etc/config', '--', 'sh', '-c', 'echo "acted on $RW_KEYS"'];
  return { ...containerOf('sidecar', image), args };
}

function containerOf(name: string, image: string) {
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    volumeMounts: [
      { name: 'config', mountPath: '/etc/config', readOnly: true },
      { name: 'config', mountPath: '/etc/single.yaml', subPath: 'app.yaml', readOnly: true },
      { name: 'secret', mountPath: '/etc/secret', readOnly: true },
      { name: 'tokens', mountPath: '/var/run/secrets/tokens', readOnly: true },
      { name: 'out', mountPath: '/out' },
    ],
  } satisfies V1Container;
}
