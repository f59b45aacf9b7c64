/** The package "@resilient-watcher/grpc": credentials of `@grpc/grpc-js` that follow files. */
export { grpcChannelCredentials } from './channel-credentials.js';
export { grpcServerCredentials, type GrpcServerOptions } from './server-credentials.js';
