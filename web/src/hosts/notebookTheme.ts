/** The theme of the notebook around a widget: each front end says it in its own way. */

export interface OuterTheme {
  isDark(): boolean;
  /** Calls back when it changes; returns how to stop that. */
  listen(changed: () => void): () => void;
}

/** What the system prefers. */
export function systemTheme(): OuterTheme {
  const system = matchMedia("(prefers-color-scheme: dark)");
  return {
    isDark: () => system.matches,
    listen(changed) {
      system.addEventListener("change", changed);
      return () => system.removeEventListener("change", changed);
    },
  };
}

/** What the notebook looks like; where it does not say, what the system prefers. */
export function notebookTheme(page: Document = document): OuterTheme {
  const system = systemTheme();
  return {
    isDark: () => saidDark(page) ?? system.isDark(),
    listen(changed) {
      const watch = new MutationObserver(changed);
      for (const element of [page.documentElement, page.body]) {
        watch.observe(element, { attributes: true, attributeFilter: ["class", "theme", "data-jp-theme-light"] });
      }
      const stop = system.listen(changed);
      return () => {
        watch.disconnect();
        stop();
      };
    },
  };
}

function saidDark({ documentElement, body }: Document): boolean | null {
  const jupyter = body.dataset.jpThemeLight;
  if (jupyter) return jupyter === "false";
  const isCode = /\bvscode-(?:dark|high-contrast|light)\b/.exec(body.className)?.[0];
  if (isCode) return isCode !== "vscode-light" && !body.classList.contains("vscode-high-contrast-light");
  const colab = documentElement.getAttribute("theme");
  return colab ? colab === "dark" : null;
}
