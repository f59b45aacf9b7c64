/** The package "@resilient-watcher/csi": publishes the volumes of a CSI driver. */
export { parseServiceAccountTokens, ServiceAccountTokens, type TokenCarrier } from './tokens.js';
export {
  VolumePublisher,
  type PublishedVolume,
  type PublishMessage,
  type PublishOperation,
  type VolumePublisherEvents,
  type VolumePublisherOptions,
  type VolumePublisherStatus,
} from './volume-publisher.js';
export type { VolumeProducer } from './publication.js';
