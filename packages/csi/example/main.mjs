// A CSI driver for ephemeral volumes with secrets of a provider. kubelet passes it the pod's ServiceAccount token in
// each NodePublishVolume. The driver sends the token to the provider, and publishes the secrets that it returns.
//
//   CSI_ENDPOINT   the socket to listen on, such as unix:///csi/csi.sock
//   NODE_ID        the name of this node
//   PROVIDER_URL   requested by GET with the bearer token, for the secrets named by the volume attribute "path";
//                  answers with JSON { "files": { "<key>": "<text>" }, "expiresAt": "<RFC 3339>" }
//   AUDIENCE       the provider's audience, one of spec.tokenRequests of the CSIDriver; default vault
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { loadPackageDefinition, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { load } from '@grpc/proto-loader';
import { parseServiceAccountTokens, VolumePublisher } from '@resilient-watcher/csi';

import { ensureDirectory, removeDirectory } from './mount.mjs';

// Charts render a value that nobody has set as an empty variable.
const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));

const {
  CSI_ENDPOINT: endpoint,
  NODE_ID: nodeId = 'localhost',
  PROVIDER_URL: providerUrl,
  AUDIENCE: audience = 'vault',
} = given;
if (!endpoint?.startsWith('unix:')) throw new Error('CSI_ENDPOINT must be a unix: address');
if (!providerUrl) throw new Error('PROVIDER_URL is not set');

// A tmpfs does not survive a power cut, so durability is not needed.
const publisher = new VolumePublisher({
  volume: { durability: 'none', graceMs: 1_000 },
  prepareTarget: (path) => ensureDirectory(path, log),
  removeTarget: removeDirectory,
});
publisher.on('published', ({ volumeId, revision }) => log('published', { volumeId, revision }));
publisher.on('failed', ({ volumeId, error, kept }) =>
  log('failed', { volumeId, kept, error: error.message }),
);

/** The secrets that the provider returns for this token. */
async function askProvider({ tokens, signal }, path) {
  const { value } = tokens.get(audience);
  const url = new URL(path, providerUrl);
  const response = await fetch(url, { signal, headers: { authorization: `Bearer ${value}` } });
  if (!response.ok) throw new Error(`the provider answered ${response.status}`);
  const { files, expiresAt } = await response.json();
  return { files, expiresAt: expiresAt && Date.parse(expiresAt) };
}

const identity = {
  GetPluginInfo: () => ({ name: 'secrets.example.com', vendor_version: '0.1.0' }),
  GetPluginCapabilities: () => ({}),
  Probe: () => ({ ready: { value: true } }),
};

const node = {
  NodeGetInfo: () => ({ node_id: nodeId }),
  NodeGetCapabilities: () => ({}),

  // Called about once a minute for as long as the pod lives (requiresRepublish).
  async NodePublishVolume(request) {
    const { volume_id: volumeId, target_path: targetPath, volume_context: context } = request;
    // Parsed by the publisher, so that the last good contents are kept even if kubelet's tokens cannot be parsed.
    const tokens = () => parseServiceAccountTokens(request);
    await publisher.publish(volumeId, targetPath, (asked) => askProvider(asked, context.path ?? ''), {
      tokens,
    });
    return {};
  },

  async NodeUnpublishVolume({ volume_id: volumeId, target_path: targetPath }) {
    await publisher.unpublish(volumeId, targetPath);
    return {};
  },
};

/** Converts a method that returns or throws into a handler of gRPC. */
function handler(method) {
  return (call, callback) => {
    Promise.resolve(call.request)
      .then(method)
      .then(
        (answer) => callback(null, answer),
        (error) => callback({ code: codeOf(error), message: error.message }),
      );
  };
}

function codeOf({ code }) {
  if (code === 'ERR_CSI_TARGET') return status.INVALID_ARGUMENT;
  if (code === 'ERR_CSI_TOKENS') return status.FAILED_PRECONDITION;
  return code === 'ERR_CSI_PRODUCE' ? status.UNAVAILABLE : status.INTERNAL;
}

function handlers(methods) {
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, handler(method)]));
}

const proto = fileURLToPath(new URL('csi.proto', import.meta.url));
const { csi } = loadPackageDefinition(await load(proto, { keepCase: true, defaults: true }));
const server = new Server();
server.addService(csi.v1.Identity.service, handlers(identity));
server.addService(csi.v1.Node.service, handlers(node));

// The socket of a killed driver would prevent this one from listening.
rmSync(endpoint.replace(/^unix:(\/\/)?/, ''), { force: true });
await new Promise((resolve, reject) => {
  server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) =>
    error ? reject(error) : resolve(),
  );
});
log('listening', { endpoint });

process.once('SIGTERM', async () => {
  await publisher.close();
  server.tryShutdown(() => log('stopped'));
});

/** Prints one line of JSON. */
function log(message, details = {}) {
  console.log(JSON.stringify({ at: new Date().toISOString(), message, ...details }));
}
