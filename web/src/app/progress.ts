/** Where a run stands. */

import type { RunEvent } from "../contract";

/** Asked for, and not yet heard of. */
export const QUEUED: RunEvent = {
  state: "queued",
  ahead: 0,
  layer: 0,
  n_layers: 0,
  done: 0,
  of: 0,
  stage: "",
  trace: "",
  result: "",
  error: "",
  message: "",
  hint: "",
  cut_to: "",
};
