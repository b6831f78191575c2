/** Light or dark: as the system has it, or as chosen here, remembered in this browser. */

const KEY = "headscope:theme";
const CHOICES = ["system", "light", "dark"] as const;
export type ThemeChoice = (typeof CHOICES)[number];

export class Appearance {
  choice = $state<ThemeChoice>("system");
  #isDark = $state(false);
  #stop: () => void;

  constructor() {
    const kept = stored();
    if (kept) this.choice = kept;
    const system = matchMedia("(prefers-color-scheme: dark)");
    this.#isDark = system.matches;
    const heard = () => {
      this.#isDark = system.matches;
    };
    system.addEventListener("change", heard);
    this.#stop = () => system.removeEventListener("change", heard);
  }

  get theme(): "light" | "dark" {
    return this.choice === "system" ? (this.#isDark ? "dark" : "light") : this.choice;
  }

  choose(choice: ThemeChoice) {
    this.choice = choice;
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // No store (a private window, a file): it lasts until the page is closed.
    }
  }

  /** What a saved page was made to look like goes before what was chosen for others. */
  suggest(choice: string) {
    const found = CHOICES.find((one) => one === choice);
    if (found && found !== "system") this.choice = found;
  }

  destroy() {
    this.#stop();
  }
}

function stored(): ThemeChoice | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return CHOICES.find((one) => one === kept);
  } catch {
    return undefined;
  }
}
