/**
 * What a component of another package adds to telemetry: its events, operations and metrics, in one table beside its
 * class. The tables of this process are in one place, whichever copy of the library a component stands on, and whether
 * an observer or the component was first. The events that all components share are in telemetry-points.ts, in the same
 * form; operations in telemetry-operations.ts, and metrics in telemetry/metrics.ts.
 */
import { ListenerError } from '../errors/errors.js';
import { processState } from '../process-state.js';

/** A metric. Histograms are of durations in seconds; gauges are read when they are collected. */
export interface Metric {
  readonly kind: 'counter' | 'histogram' | 'gauge';
  /** UCUM unit. */
  readonly unit: string;
  /** `target` or `loader` is the name of the component. */
  readonly labels: readonly string[];
  readonly help: string;
  /** Counters only: where they begin with 0. Without it, `increase()` misses the first failure. */
  readonly initial?: readonly Labels[];
  /** Gauges only: which value is used if two components have the same labels (the worse one). */
  readonly of?: 'least' | 'greatest';
}

export type Labels = Readonly<Record<string, string>>;

/** Where events and operations are counted; the label of the component is added. */
export interface Meter {
  count(metric: string, labels: Labels, by?: number): void;
  record(metric: string, seconds: number, labels?: Labels): void;
  /** A failure, unless the owner of the component reports it, too. */
  error(type: string): void;
}

/** What the log says after the name of the component. `routine`: the level that the application chose for such lines. */
export interface LogLine {
  readonly level: 'routine' | 'warn' | 'error';
  readonly text: string;
}

/** What the log says about an event, and which metrics count it. */
export interface EventLine<Message extends object = object> {
  readonly level: LogLine['level'];
  text(message: Message): string;
  /** What many events have in common that are one line a minute: a trouble of a namespace concerns each of its pods. */
  cause?(message: Message): string | undefined;
  measure?(message: Message, meter: Meter): void;
}

export interface EventDefinition<Message extends object = object> extends EventLine<Message> {
  /** The fields of its payload that are published. What is not listed never reaches a channel. */
  readonly fields: readonly string[];
}

/** An operation of one kind of component. `result`: `error` for a failure. */
export interface OperationDefinition<Message extends object = object> {
  /** What the log says about its end. Absent: nothing. */
  line?(message: Message & { readonly result: string }): LogLine | undefined;
  measure?(message: Message & { readonly result: string }, meter: Meter, seconds: number): void;
}

/** The table of one kind of component. */
export interface ComponentTelemetry {
  readonly events?: Readonly<Record<string, EventDefinition>>;
  readonly operations?: Readonly<Record<string, OperationDefinition>>;
  readonly metrics?: Readonly<Record<string, Metric>>;
}

/** Such a table, with the types of the messages of its events and operations by their names. */
export interface TelemetryTable<
  Events extends Record<keyof Events, object>,
  Operations extends Record<keyof Operations, object> = Record<string, object>,
> extends ComponentTelemetry {
  readonly events?: { readonly [E in keyof Events]: EventDefinition<Events[E]> };
  readonly operations?: { readonly [O in keyof Operations]: OperationDefinition<Operations[O]> };
}

interface Registry {
  readonly tables: Map<string, ComponentTelemetry>;
  readonly followers: Set<(table: ComponentTelemetry) => void>;
}

const registry = processState('telemetry', (): Registry => ({ tables: new Map(), followers: new Set() }));

/** Adds the table of a kind of component, unless there is one: of two copies of a package, the first describes both. */
export function defineTelemetry(kind: string, table: ComponentTelemetry): void {
  const { tables, followers } = registry();
  if (tables.has(kind)) return;
  tables.set(kind, table);
  for (const follower of followers) {
    try {
      follower(table);
    } catch (error) {
      process.emitWarning(new ListenerError(kind, error));
    }
  }
}

export function telemetryOf(kind: string): ComponentTelemetry | undefined {
  return registry().tables.get(kind);
}

/**
 * Calls back once with each entry of one kind: those of the library, and those of the tables, now and when one is
 * added. Returns a function that ends it.
 */
export function followTelemetry<Entry>(
  own: Readonly<Record<string, Entry>>,
  entriesOf: (table: ComponentTelemetry) => Readonly<Record<string, Entry>> | undefined,
  follower: (name: string, entry: Entry) => void,
): () => void {
  const { tables, followers } = registry();
  const known = new Set<string>();
  const add = (entries: Readonly<Record<string, Entry>> = {}): void => {
    for (const [name, entry] of Object.entries(entries)) {
      if (known.has(name)) continue;
      known.add(name);
      follower(name, entry);
    }
  };
  const addTable = (table: ComponentTelemetry): void => add(entriesOf(table));
  add(own);
  for (const table of tables.values()) addTable(table);
  followers.add(addTable);
  return () => void followers.delete(addTable);
}
