// `mqtt` (MQTT.js) over TLS with the certificate and CA bundle of a mounted Secret. The open connection continues; each
// later one is made with the current set. `client.reconnect()` makes one at once.
import { connect as connectMqtt, type IClientOptions, type MqttClient } from 'mqtt';
import type { TlsCredentials, TlsFiles } from 'resilient-watcher/tls';

/** @param options of `connect()`, without ca, cert and key */
export async function connect(
  files: TlsFiles,
  url: string,
  options: IClientOptions = {},
): Promise<MqttClient> {
  const first = await files.get();
  const client = connectMqtt(url, { ...options, ...(first.options as IClientOptions) });
  const onChange = ({ current }: { current: TlsCredentials }): void => {
    Object.assign(client.options, current.options);
  };
  files.on('change', onChange);
  client.on('error', () => {}); // it connects again by itself
  client.once('end', () => files.off('change', onChange));
  return client;
}
