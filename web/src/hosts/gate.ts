/** Which tasks of a run the user has asked for. A task that only the address of the page asks for is not computed: the
 *  server returns its result if it holds one. */
export class Gate {
  #isOpen: boolean;
  readonly #allowed = new Set<string>();

  /** An open gate lets every task be computed. `miss` is called with a task that was refused and is not held. */
  constructor(
    isOpen: boolean,
    readonly miss: (task: string) => void,
  ) {
    this.#isOpen = isOpen;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  mayCompute(task: string): boolean {
    return this.#isOpen || this.#allowed.has(task);
  }

  /** The user asks for this task. */
  allow(task: string) {
    this.#allowed.add(task);
  }

  /** The address has changed: what it asks for from now on, the user has not asked for. */
  close() {
    this.#isOpen = false;
    this.#allowed.clear();
  }
}
