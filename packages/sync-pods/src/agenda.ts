/** Items by the time at which they are due: a binary heap. An item may be in it several times. */
export class Agenda<T> {
  readonly #heap: { readonly at: number; readonly item: T }[] = [];

  /** The time of the first item; `Infinity` if there is none. */
  get next(): number {
    return this.#heap[0]?.at ?? Infinity;
  }

  add(at: number, item: T): void {
    const heap = this.#heap;
    let index = heap.length;
    for (let above = (index - 1) >> 1; index > 0; above = (index - 1) >> 1) {
      const parent = heap[above];
      if (!parent || parent.at <= at) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = { at, item };
  }

  /** Removes and returns the first item, with its time. */
  take(): { readonly at: number; readonly item: T } | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!last || heap.length === 0) return first;
    let index = 0;
    for (let below = 1; below < heap.length; below = 2 * index + 1) {
      if ((heap[below + 1]?.at ?? Infinity) < (heap[below]?.at ?? Infinity)) below += 1;
      const child = heap[below];
      if (!child || child.at >= last.at) break;
      heap[index] = child;
      index = below;
    }
    heap[index] = last;
    return first;
  }

  clear(): void {
    this.#heap.length = 0;
  }
}
