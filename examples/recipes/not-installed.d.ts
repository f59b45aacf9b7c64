/** What the pages use of packages that are too large to install for a compiler. */
declare module '@temporalio/client' {
  export const Connection: { connect(options: { address: string; credentials: object }): Promise<object> };
}

declare module '@temporalio/worker' {
  interface Tls {
    readonly serverRootCACertificate: Buffer | undefined;
    readonly clientCertPair: { readonly crt: Buffer; readonly key: Buffer };
  }

  export class NativeConnection {
    static connect(options: { address: string; tls: Tls }): Promise<NativeConnection>;
    close(): Promise<void>;
  }

  export class Worker {
    static create(options: {
      connection: NativeConnection;
      taskQueue: string;
      workflowsPath: string;
    }): Promise<Worker>;
    connection: NativeConnection | undefined;
    run(): Promise<void>;
  }
}
