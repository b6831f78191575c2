/** The address of the page, as far as it is ours: its fragment. */

export interface Address {
  read(): string;
  write(fragment: string, history: "keep" | "replace"): void;
  /** Calls back when the user goes back, forward or changes the address; returns how to stop that. */
  listen(moved: () => void): () => void;
}

/** Browsers refuse more than some 100 changes of the address in 30 seconds: while a slider moves, only the last counts. */
const PAUSE = 200;

/** The browser's own. Where it may not be written (a frame without an address), the page works without. */
export function ownAddress(): Address {
  let pending: ReturnType<typeof setTimeout> | undefined;
  let latest = "";
  const put = (how: "pushState" | "replaceState", hash: string) => {
    clearTimeout(pending);
    pending = undefined;
    if (location.hash === hash) return;
    try {
      history[how](null, "", hash);
    } catch {
      // A sandboxed frame: there is no address to write to.
    }
  };
  return {
    read: () => location.hash,
    write(fragment, how) {
      if (pending !== undefined && how === "keep") put("replaceState", latest);
      latest = `#${fragment}`;
      if (how === "keep") return put("pushState", latest);
      clearTimeout(pending);
      pending = setTimeout(() => put("replaceState", latest), PAUSE);
    },
    listen(moved) {
      const heard = () => {
        clearTimeout(pending);
        pending = undefined;
        moved();
      };
      addEventListener("popstate", heard);
      return () => removeEventListener("popstate", heard);
    },
  };
}

/** For one of several on the same page, which cannot all be in its address. */
export function noAddress(): Address {
  return { read: () => "", write() {}, listen: () => () => {} };
}

/** Inputs too long for a link stay in this tab, under a name made from them. */
export function keep(text: string): string {
  const name = hashed(text);
  try {
    sessionStorage.setItem(`headscope:input:${name}`, text);
  } catch {
    // Full, or forbidden: the link then cannot bring the input back, and says so when it is opened.
  }
  return name;
}

export function recall(name: string): string | null {
  try {
    return sessionStorage.getItem(`headscope:input:${name}`);
  } catch {
    return null;
  }
}

/** FNV-1a with 2 × 32 bits: a name, not a secret. */
function hashed(text: string): string {
  let first = 0x811c9dc5;
  let two = 0x9747b28c;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    first = Math.imul(first ^ code, 0x01000193);
    two = Math.imul(two ^ code, 0x85ebca6b);
  }
  return (first >>> 0).toString(36) + (two >>> 0).toString(36);
}
