/** The served page: parts over HTTP, and runs, which a saved file cannot do. */

import type { ModelProps, Problem, RunEvent, RunRequest, Settings, TaskRequest } from "../contract";
import type { Selection } from "../selection";
import { isNotComputed, notComputed, type Source, SourceError } from "../source";
import { decode, type Part } from "../wire";
import type { Gate } from "./gate";
import { partCache } from "./partCache";

const API = "api";
const ONLY_KEPT = "?only_kept=true";

export function settings(signal?: AbortSignal): Promise<Settings> {
  return asked(`${API}/settings`, { signal: signal ?? null }).then((answer) => answer.json());
}

/** Loads a model, and tells what it takes. */
export function load(name: string, signal: AbortSignal): Promise<ModelProps> {
  return asked(`${API}/models`, { ...posted({ name }), signal }).then((answer) => answer.json());
}

/** Runs a model; tells where the run stands as it goes. Aborting the signal stops the run, mid-forward. */
export async function run(request: RunRequest, hear: (event: RunEvent) => void, signal: AbortSignal): Promise<string> {
  return (await heard(await asked(`${API}/runs`, { ...posted(request), signal }), hear)).trace;
}

/** The id of the trace of a run that the server holds, or null. Nothing is computed. */
export async function keptRun(request: RunRequest, signal: AbortSignal): Promise<string | null> {
  const { state, trace } = await heard(
    await asked(`${API}/runs${ONLY_KEPT}`, { ...posted(request), signal }),
    () => {},
  );
  return state === "absent" ? null : trace;
}

/** Has a task done, of a trace or of a model, and gives what it found. Aborting the signal stops it. With `onlyKept`
 *  nothing is computed: rejects with `notComputed` where the server holds no result. */
export async function task<Props>(
  wanted: Partial<TaskRequest> & { name: string },
  hear: (event: RunEvent) => void,
  signal: AbortSignal,
  onlyKept = false,
): Promise<Part<Props>> {
  const request: TaskRequest = { trace: "", model: "", options: {}, ...wanted };
  const address = `${API}/tasks${onlyKept ? ONLY_KEPT : ""}`;
  const { state, result } = await heard(await asked(address, { ...posted(request), signal }), hear);
  if (state === "absent") throw notComputed();
  const answer = await asked(`${API}/results/${encodeURIComponent(result)}`, { signal });
  return decode(await answer.arrayBuffer()) as Part<Props>;
}

/** The last word of a run or a task. */
export async function heard(answer: Response, hear: (event: RunEvent) => void): Promise<RunEvent> {
  for await (const event of lines(answer)) {
    if (event.state === "failed") throw new SourceError(event.message, event.hint, event.error, 0, 0, event.cut_to);
    if (event.state === "cancelled") throw new DOMException("the run was stopped", "AbortError");
    if (event.state === "absent") return event;
    hear(event);
    if (event.state === "done") return event;
  }
  throw new SourceError("The server stopped answering in the middle of the run.", "Try again.", "Unreachable");
}

/** The parts of one trace, and tasks as far as the gate lets them be computed. */
export function traceSource(id: string, gate: Gate): Source {
  const load = async (key: string, signal: AbortSignal): Promise<Part<unknown>> => {
    const answer = await asked(`${API}/traces/${encodeURIComponent(id)}/${key}`, { signal });
    return decode(await answer.arrayBuffer());
  };
  return {
    isLive: true,
    part: partCache(load),
    async task<Props>(
      name: string,
      options: Record<string, unknown>,
      hear: (event: RunEvent) => void,
      signal: AbortSignal,
    ) {
      const onlyKept = !gate.mayCompute(name);
      try {
        return await task<Props>({ name, trace: id, options }, hear, signal, onlyKept);
      } catch (thrown) {
        if (isNotComputed(thrown) && !signal.aborted) gate.miss(name);
        throw thrown;
      }
    },
  };
}

/** The parts of one trace minus another, on the tokens that both have; and what tasks there are of both. */
export function differenceSource(source: Source, other: string): Source {
  return {
    isLive: true,
    task: (name, options, hear, signal) => {
      if (!source.task) throw new SourceError("There is no model to ask here.");
      return source.task(name, { ...options, minus: other }, hear, signal);
    },
    part: (key, signal) => source.part(minus(key, other), signal),
    has: (key) => !/^(gold|tree|report)/.test(key), // these are of one run
  };
}

/** The key of a part of two runs. */
export function minus(key: string, other: string): string {
  return `${key}${key.includes("?") ? "&" : "?"}minus=${encodeURIComponent(other)}`;
}

/** The page as one file that opens offline. */
export async function savedPage(id: string, selection: Selection, other = ""): Promise<Blob> {
  const answer = await asked(
    `${API}/traces/${encodeURIComponent(id)}/page`,
    posted({ view: selection.scale, selection, minus: other }),
  );
  return answer.blob();
}

/** All numbers of some heads, as a file. */
export async function table(id: string, options: Record<string, string>): Promise<Blob> {
  const answer = await asked(`${API}/traces/${encodeURIComponent(id)}/table?${new URLSearchParams(options)}`);
  return answer.blob();
}

/** The edits of a run, as a file that Python reads. */
export async function editsFile(id: string): Promise<{ file: Blob; name: string }> {
  const answer = await asked(`${API}/traces/${encodeURIComponent(id)}/edits`);
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "edits.json";
  return { file: await answer.blob(), name };
}

/** The edits that such a file holds, each as the Python that makes it. */
export async function readEdits(text: string): Promise<string[]> {
  return (await (await asked(`${API}/edits`, posted({ text }))).json()).edits;
}

/** Writes the model with a run's edits into a new folder, where the server may; gives that folder. */
export async function saveModel(id: string, name: string): Promise<string> {
  return (await (await asked(`${API}/traces/${encodeURIComponent(id)}/model`, posted({ name }))).json()).folder;
}

/** Exchanges the token for the cookie of this browser. */
export async function signIn(token: string): Promise<void> {
  await asked(`${API}/sign-in`, { method: "POST", headers: { "content-type": "text/plain" }, body: token });
}

/** The token in what somebody pasted: itself, or an address that holds it. */
export function tokenIn(pasted: string): string {
  const text = pasted.trim();
  return /[?&]token=([^&#\s]+)/.exec(text)?.[1] ?? text;
}

/** A request with a body. */
export function posted(body: object): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** The server's answer; what is not one is thrown as something that can be shown. */
export async function asked(url: string, options: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, { credentials: "same-origin", ...options });
  } catch (thrown) {
    if (thrown instanceof DOMException) throw thrown; // aborted
    throw new SourceError(
      "The Headscope server does not answer.",
      "Look at the terminal it was started in: if it has stopped, start it again with `headscope`.",
      "Unreachable",
    );
  }
  if (answer.ok) return answer;
  const problem: Partial<Problem> = await answer.json().catch(() => ({}));
  const wait = Number(answer.headers.get("retry-after")) || 0;
  const [message, hint] = words(answer.status, wait, problem);
  throw new SourceError(message, hint, problem.error ?? `HTTP ${answer.status}`, answer.status, wait, problem.cut_to);
}

function words(status: number, wait: number, problem: Partial<Problem>): [string, string] {
  if (status === 401) {
    return [
      problem.error === "WrongToken" ? "This is not the token of this server." : "This browser is not signed in.",
      "Open the address that the terminal shows, or paste it here.",
    ];
  }
  if (status === 429) {
    return [problem.message ?? "Too many runs are waiting.", problem.hint || `Try again in ${wait || 5} seconds.`];
  }
  return [problem.message ?? `The server answered with status ${status}.`, problem.hint ?? ""];
}

async function* lines(answer: Response): AsyncGenerator<RunEvent> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const whole = (rest + (value ?? "")).split("\n");
      rest = done ? "" : (whole.pop() ?? "");
      for (const line of whole) if (line.trim()) yield JSON.parse(line) as RunEvent;
      if (done) return;
    }
  } catch (thrown) {
    if (thrown instanceof DOMException || thrown instanceof SourceError) throw thrown;
    throw new SourceError("The connection broke in the middle of the run.", "Try again.", "Unreachable");
  } finally {
    reader.cancel().catch(() => {});
  }
}
