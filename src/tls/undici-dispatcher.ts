import type * as undiciModule from 'undici';
import type { Agent, buildConnector, Dispatcher } from 'undici';
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';

import { hasMethods } from '../core/options/options.js';
import { exportsOf, PackageError } from '../core/errors/package-error.js';
import { endEach, Generations, trustsLess, type Generation } from './generation.js';
import type { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { checkClientOptions, checkTlsFiles, type TlsFiles, type TlsFilesEvents } from './tls-files.js';

type Undici = typeof undiciModule;

/**
 * Resolves to a dispatcher for `fetch()` and `undici.request()`. It trusts the CA bundle of the files, and presents
 * their certificate, if they have one. After a change, new requests use a new pool of connections; requests in flight
 * finish in the old one. If the change removes a CA, they have 30 s, and requests that still wait in the old pool are
 * taken back when it is about to send them, 30 s later at most, and sent by the new one. Those whose body is a stream
 * fail with a `TlsError` (`ERR_TLS_CA`) instead: they have not been sent. If a later set has no CA bundle, the last one
 * stays in use. Close the dispatcher when it is no longer used. Starts the files; the caller has to close them.
 * @param options options of undici's `Agent`, among them those for its connector, such as `connectTimeout`, `allowH2`
 * and `socketPath`; `connect` and `tls` options are kept, except that `ca`, `cert`, `key` and `crl` are replaced by
 * those of the files, if they have them, and `secureContext`, `pfx` and `session` are refused, with which the files
 * would not decide who is trusted. `pipelining` is at most 1.
 * @throws {TlsError} (rejects) if the files are not usable.
 * @throws {PackageError} (rejects) if `undici` is not installed.
 */
export async function undiciDispatcher(files: TlsFiles, options: Agent.Options = {}): Promise<Dispatcher> {
  checkTlsFiles('undiciDispatcher', 'files', files);
  if (typeof options.connect === 'function') {
    throw new TypeError(
      'undiciDispatcher: "connect" must be options; a function would not see the certificate',
    );
  }
  checkClientOptions('undiciDispatcher', { ...connectorOptions(options), ...options.connect });
  if (Number(options.pipelining) > 1) {
    // undici would destroy its connection, and with it the request in flight.
    const why = 'a request that waits behind another could not be taken back when a CA is removed';
    throw new TypeError(`undiciDispatcher: "pipelining" must be at most 1; ${why}`);
  }
  const undici = await loadUndici();
  return newDispatcher(undici, files, options, await files.get());
}

async function loadUndici(): Promise<Undici> {
  // Bundlers accept a missing package only if the import is in a `try`.
  try {
    return exportsOf(await import('undici'));
  } catch (cause) {
    throw new PackageError('undici', '7 or later', cause);
  }
}

/** What a dispatcher emits. */
const EVENTS = ['connect', 'disconnect', 'connectionError', 'drain'] as const;

/** The options of `Agent` that undici passes on to a connector of its own. The types lack some of them. */
function connectorOptions(options: object): buildConnector.BuildOptions {
  const given = options as Readonly<Record<string, unknown>>;
  const names = ['maxCachedSessions', 'allowH2', 'useH2c', 'socketPath'];
  const families = ['autoSelectFamily', 'autoSelectFamilyAttemptTimeout'];
  if (given['autoSelectFamily'] !== undefined) names.push(...families);
  const named = Object.fromEntries(names.map((name) => [name, given[name]]));
  return { ...(given['tls'] as object | undefined), ...named, timeout: given['connectTimeout'] as number };
}

type Controller = Dispatcher.DispatchController;

/** The types of undici lack these methods of `DecoratorHandler`. */
interface RequestHandler {
  onRequestStart(controller: Controller, context: unknown): void;
  onResponseError(controller: Controller, error: Error): void;
}

/**
 * Which handlers are understood. `Guard` hides a handler from undici, which would refuse it: undici 8 no longer takes
 * those of `fetch()` of Node.js 24.
 */
function knownBy({ DecoratorHandler }: Undici): (handler: object) => boolean {
  let takesOlder = false;
  const older: object = { onConnect: () => (takesOlder = true) };
  (new DecoratorHandler(older) as unknown as RequestHandler).onRequestStart({} as Controller, {});
  const has = (handler: object, name: string): boolean => hasMethods(handler, [name]);
  return (handler) => has(handler, 'onRequestStart') || (takesOlder && has(handler, 'onConnect'));
}

/** The connections made with one set. */
interface Pool {
  readonly agent: Agent;
  readonly generation: Generation;
}

/**
 * A class, because its base is loaded at run time.
 *
 * | in an old pool     | a change                                 | a CA was removed                          |
 * |--------------------|------------------------------------------|-------------------------------------------|
 * | idle connection    | is closed                                | is closed                                 |
 * | request in flight, | finishes                                 | finishes within 30 s                      |
 * | upgraded           |                                          |                                           |
 * | waiting request,   | is sent, by a new connection with the    | goes to the new pool when it is about to  |
 * | also for a         | current set if none is free              | be sent; fails with `ERR_TLS_CA` if its   |
 * | handshake          |                                          | body is a stream                          |
 */
function newDispatcher(
  undici: Undici,
  files: TlsFiles,
  { connect: connectOptions, ...options }: Agent.Options,
  initial: TlsCredentials,
): Dispatcher {
  const isKnown = knownBy(undici);

  class TlsFilesDispatcher extends undici.Dispatcher {
    #connector = this.#newConnector(initial);
    /** Of its connections, also those that were upgraded and are of no pool any more. */
    readonly #generations = new Generations<Socket>();
    /** With those of earlier sets that still have requests in flight. */
    readonly #agents = new Set<Agent>();
    /** The origins to which too many requests wait, as `dispatch()` has said. */
    readonly #busy = new Set<string>();
    #pool = this.#newPool();

    constructor() {
      super();
      files.on('change', this.#onChange);
    }

    override dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
      if (!isKnown(handler)) {
        const fix = 'use the fetch() of the installed package "undici"';
        throw new TlsError(
          'ERR_TLS_UNSUPPORTED',
          `undiciDispatcher: the request comes from another version of undici; ${fix}`,
        );
      }
      const pool = this.#pool;
      const dispatchAgain = (): boolean => this.dispatch(request, handler);
      // undici destroys the stream of a request that is taken back, which it knows by these methods. Other bodies have
      // not been touched.
      const isStream = hasMethods(request.body, ['pipe', 'on']);
      const isFree = pool.agent.dispatch(
        request,
        new Guard(pool.generation, handler, isStream ? undefined : dispatchAgain),
      );
      if (!isFree) this.#busy.add(new URL(String(request.origin)).origin);
      return isFree;
    }

    get closed(): boolean {
      return this.#pool.agent.closed;
    }

    get destroyed(): boolean {
      return this.#pool.agent.destroyed;
    }

    override close(): Promise<void>;
    override close(callback: () => void): void;
    override close(callback?: () => void): Promise<void> | void {
      const closed = Promise.all([...this.#agents].map((agent) => this.#close(agent))).then(() => {});
      if (!callback) return closed;
      void closed.then(callback, callback);
    }

    override destroy(error?: Error | null | (() => void), callback?: () => void): Promise<void> {
      const reason = error instanceof Error ? error : null;
      const onDestroyed = typeof error === 'function' ? error : callback;
      const destroyed = Promise.all(
        [...this.#agents].map((agent) => agent.destroy(reason).finally(() => this.#forget(agent))),
      ).then(() => {});
      void destroyed.then(onDestroyed, onDestroyed);
      return destroyed;
    }

    #newConnector(credentials: TlsCredentials): buildConnector.connector {
      return undici.buildConnector({
        ...connectorOptions(options),
        ...(connectOptions as buildConnector.BuildOptions),
        ...credentials.options,
      });
    }

    #newPool(): Pool {
      const connect: buildConnector.connector = (given, callback) => {
        this.#connector(given, (...result) => {
          const [, socket] = result;
          if (socket) {
            const forget = this.#generations.add(socket);
            socket.once('close', () => {
              forget();
              this.#unfollow();
            });
          }
          callback(...result);
        });
      };
      const agent = new undici.Agent({ ...options, connect });
      for (const event of EVENTS) {
        const onEvent = (origin: URL, [, ...targets]: readonly unknown[], ...rest: unknown[]): void => {
          if (event === 'drain') this.#busy.delete(origin.origin);
          this.#emit(event, origin, [this, ...targets], ...rest);
        };
        (agent as EventEmitter).on(event, onEvent);
      }
      this.#agents.add(agent);
      return { agent, generation: this.#generations.current };
    }

    async #close(agent: Agent): Promise<void> {
      // Fails only if it was destroyed meanwhile, which closes it as well.
      await agent.close().catch(() => {});
      this.#forget(agent);
    }

    #forget(agent: Agent): void {
      this.#agents.delete(agent);
      this.#unfollow();
    }

    /** Without the types of undici, which differ from event to event. */
    #emit(...event: readonly [string, ...unknown[]]): void {
      (this as EventEmitter).emit(...event);
    }

    /** Until then, requests in flight and upgraded connections may have to end. */
    #unfollow(): void {
      if (this.#agents.size === 0 && this.#generations.isEmpty) files.off('change', this.#onChange);
    }

    readonly #onChange = ({ current, previous }: TlsFilesEvents['change'][0]): void => {
      const { agent } = this.#pool;
      const isOver = agent.closed || agent.destroyed;
      const earlier = [...this.#agents];
      const ending = trustsLess(previous, current) ? this.#generations.endAll() : undefined;
      this.#connector = this.#newConnector(current);
      this.#pool = this.#newPool();
      for (const pool of isOver ? [agent, this.#pool.agent] : [agent]) void this.#close(pool);
      // Nothing waits in the new pool, and the old one may be destroyed before it has drained.
      const drained = [...this.#busy];
      this.#busy.clear();
      for (const origin of drained) this.#emit('drain', new URL(origin), [this]);
      if (ending === undefined) return;
      endEach(earlier);
      files.reportEnded('undiciDispatcher', ending);
    };
  }

  /** Takes back a request that an ended pool is about to send. */
  class Guard extends (undici.DecoratorHandler as unknown as new (handler: object) => RequestHandler) {
    readonly #generation: Generation;
    readonly #dispatchAgain: (() => boolean) | undefined;
    #isStarted = false;

    constructor(generation: Generation, handler: object, dispatchAgain: (() => boolean) | undefined) {
      super(handler);
      this.#generation = generation;
      this.#dispatchAgain = dispatchAgain;
    }

    override onRequestStart(controller: Controller, context: unknown): void {
      if (this.#generation.isOver) {
        const message =
          'A CA was removed or a certificate revoked while the request was waiting; it was not sent, and can be repeated';
        controller.abort(new TlsError('ERR_TLS_CA', message));
      } else {
        this.#isStarted = true;
        super.onRequestStart(controller, context);
      }
    }

    override onResponseError(controller: Controller, error: Error): void {
      const isMoving = this.#generation.isOver && !this.#isStarted;
      if (isMoving && this.#dispatchAgain) this.#dispatchAgain();
      else super.onResponseError(controller, error);
    }
  }
  return new TlsFilesDispatcher();
}
