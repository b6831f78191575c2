/** Light or dark: as the system (or the notebook around) has it, or as chosen here; a page of ours remembers that in this
 *  browser. */

import { type OuterTheme, systemTheme } from "../hosts/notebookTheme";

const KEY = "headscope:theme";
const CHOICES = ["system", "light", "dark"] as const;
export type ThemeChoice = (typeof CHOICES)[number];

export class Appearance {
  choice = $state<ThemeChoice>("system");
  #isDark = $state(false);
  #stop: () => void;

  /** The theme around decides where nothing is chosen; without it, the page is ours and the choice is kept. */
  constructor(private readonly outerTheme?: OuterTheme) {
    const kept = outerTheme ? undefined : stored();
    if (kept) this.choice = kept;
    const outside = outerTheme ?? systemTheme();
    this.#isDark = outside.isDark();
    this.#stop = outside.listen(() => {
      this.#isDark = outside.isDark();
    });
  }

  get theme(): "light" | "dark" {
    return this.choice === "system" ? (this.#isDark ? "dark" : "light") : this.choice;
  }

  choose(choice: ThemeChoice) {
    this.choice = choice;
    if (this.outerTheme) return;
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // No store (a private window, a file): it lasts until the page is closed.
    }
  }

  /** What a saved page was made to look like goes before what was chosen for others. */
  suggest(choice: string) {
    const known = CHOICES.find((name) => name === choice);
    if (known && known !== "system") this.choice = known;
  }

  destroy() {
    this.#stop();
  }
}

function stored(): ThemeChoice | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return CHOICES.find((name) => name === kept);
  } catch {
    return undefined;
  }
}
