/** Pictures and sounds that the user gives: sent to the server, known here by the name of their file. */

import type { MediaProps, Problem } from "../../contract";
import { SourceError } from "../../source";

const PRESET = "preset:";
const NAMES = "headscope:media";

/** Upload a file; what it is, and what will be done to it. */
export async function upload(file: File, most: number): Promise<MediaProps> {
  if (most && file.size > most) {
    throw new SourceError(
      `This file has ${megabytes(file.size)}: the server takes ${megabytes(most)}.`,
      "",
      "TooLarge",
    );
  }
  let answer: Response;
  try {
    const headers = { "content-type": "application/octet-stream" };
    answer = await fetch("api/media", { method: "POST", headers, body: file, credentials: "same-origin" });
  } catch {
    throw new SourceError(
      "The Headscope server does not answer.",
      "Look at the terminal it was started in.",
      "Unreachable",
    );
  }
  if (!answer.ok) {
    const problem: Partial<Problem> = await answer.json().catch(() => ({}));
    throw new SourceError(
      problem.message ?? `The server answered with status ${answer.status}.`,
      problem.hint,
      problem.error,
    );
  }
  const media: MediaProps = await answer.json();
  remember(media.id, file.name);
  return media;
}

/** Where a small picture of it is. */
export function mediaAddress(id: string): string {
  return `api/media/${encodeURIComponent(id)}`;
}

export function isPreset(id: string): boolean {
  return id.startsWith(PRESET);
}

/** What people call it: a preset's name, or the file's as far as this tab remembers. */
export function mediaName(id: string): string {
  return isPreset(id) ? id.slice(PRESET.length) : (names()[id] ?? "a file of yours");
}

function remember(id: string, name: string): void {
  try {
    sessionStorage.setItem(NAMES, JSON.stringify({ ...names(), [id]: name.slice(0, 80) }));
  } catch {
    // The tab's store is full: the file then has no name here.
  }
}

function names(): Record<string, string> {
  try {
    return JSON.parse(sessionStorage.getItem(NAMES) ?? "{}");
  } catch {
    return {};
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
