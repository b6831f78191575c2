/** The few buttons that lie on the picture: what dragging does, nearer and further, all of it. */

import { FONT } from "../theme";

/** What dragging with the pointer does. */
export type Grip = "move" | "lasso" | "box";

export interface Tools {
  grip(grip: Grip): void;
  zoom(factor: number): void;
  fit(): void;
}

const GRIPS: { grip: Grip; label: string; title: string }[] = [
  { grip: "move", label: "Move", title: "Drag to move; in three dimensions, to turn (m)" },
  { grip: "lasso", label: "Lasso", title: "Drag around points to select them; or drag with Shift (l)" },
  { grip: "box", label: "Box", title: "Drag a box over points to select them; or drag with Alt (b)" },
];

export class ToolBox {
  readonly element = document.createElement("div");
  private readonly grips = document.createElement("div");
  private state = "";

  constructor(tools: Tools) {
    Object.assign(this.element.style, {
      position: "absolute",
      right: "10px",
      top: "10px",
      display: "flex",
      gap: "6px",
      flexWrap: "wrap",
      justifyContent: "flex-end",
    });
    this.element.setAttribute("role", "toolbar");
    this.element.setAttribute("aria-label", "Picture");
    this.grips.setAttribute("role", "group");
    this.grips.setAttribute("aria-label", "Dragging");
    const [zoom, all] = [group(), group()];
    for (const { grip, label, title } of GRIPS) {
      const choice = button(label, title);
      choice.dataset.grip = grip;
      choice.addEventListener("click", () => tools.grip(grip));
      this.grips.append(choice);
    }
    zoom.append(
      acting(button("−", "Zoom out (−)", "Zoom out"), () => tools.zoom(1 / 1.5)),
      acting(button("+", "Zoom in (+)", "Zoom in"), () => tools.zoom(1.5)),
    );
    all.append(acting(button("Fit", "Show all of it (0)"), () => tools.fit()));
    Object.assign(this.grips.style, ROW);
    this.element.append(this.grips, zoom, all);
    this.element.addEventListener("keydown", (event) => this.rove(event));
    this.rest();
  }

  show(grip: Grip, canSelect: boolean, canMove: boolean): void {
    const state = `${grip} ${canSelect} ${canMove}`;
    if (state === this.state) return;
    this.state = state;
    this.element.style.display = canMove ? "flex" : "none";
    this.grips.style.display = canSelect ? "flex" : "none";
    for (const choice of this.grips.querySelectorAll("button")) press(choice, choice.dataset.grip === grip);
    this.rest();
  }

  /** One stop for Tab; arrows move within. */
  private rove(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const buttons = this.buttons();
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const next = buttons[(at + step + buttons.length) % buttons.length];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    for (const other of buttons) other.tabIndex = other === next ? 0 : -1;
    next.focus();
  }

  private rest(): void {
    const buttons = this.buttons();
    const current = buttons.find((candidate) => candidate === document.activeElement) ?? buttons[0];
    for (const other of buttons) other.tabIndex = other === current ? 0 : -1;
  }

  private buttons(): HTMLButtonElement[] {
    return [...this.element.querySelectorAll("button")].filter(
      ({ parentElement }) => parentElement?.style.display !== "none",
    );
  }
}

const ROW = {
  display: "flex",
  border: "1px solid var(--line)",
  borderRadius: "6px",
  overflow: "hidden",
  background: "var(--panel)",
};

function group(): HTMLElement {
  const element = document.createElement("div");
  Object.assign(element.style, ROW);
  return element;
}

function acting(element: HTMLButtonElement, act: () => void): HTMLButtonElement {
  element.addEventListener("click", act);
  return element;
}

export function button(label: string, title = "", name = ""): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = label;
  if (title) element.title = title;
  if (name) element.setAttribute("aria-label", name);
  Object.assign(element.style, {
    font: `12px/1.4 ${FONT}`,
    padding: "4px 9px",
    border: "0",
    cursor: "pointer",
    background: "var(--panel)",
    color: "var(--ink)",
  });
  return element;
}

function press(element: HTMLButtonElement, isOn: boolean): void {
  element.setAttribute("aria-pressed", String(isOn));
  element.style.background = isOn ? "var(--tint)" : "var(--panel)";
  element.style.color = isOn ? "var(--accent)" : "var(--ink)";
}
