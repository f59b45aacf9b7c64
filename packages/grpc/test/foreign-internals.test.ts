/** What the package uses of grpc-js although nobody promises it. If one of these tests fails, it has moved. */
import { experimental } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';

const provider = {
  addCaCertificateListener: () => {},
  removeCaCertificateListener: () => {},
  addIdentityCertificateListener: () => {},
  removeIdentityCertificateListener: () => {},
};

describe('@grpc/grpc-js has still', () => {
  test('a method of its channel credentials that creates connectors', () => {
    const credentials = experimental.createCertificateProviderChannelCredentials(provider, null, {});
    expect(credentials._createSecureConnector).toBeTypeOf('function');
    const target = { scheme: 'dns', path: 'localhost:1' };
    const connector = credentials._createSecureConnector(target, {});
    expect(connector.connect).toBeTypeOf('function');
    connector.destroy();
  });

  test('a method of its server credentials that is asked for the options of a server', () => {
    const credentials = experimental.createCertificateProviderServerCredentials(provider, null, false);
    expect(credentials._getConstructorOptions).toBeTypeOf('function');
  });
});
