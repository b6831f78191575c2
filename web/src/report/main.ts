/** The report of heads: draws everything from the data in its page, and asks nothing of anyone else. */

import { css, DARK, LIGHT, type Theme } from "../theme";
import { drawCard } from "./card";
import { type Choice, choiceOf, hashOf } from "./choice";
import { Contents, type ReportJson } from "./contents";
import { drawCurves } from "./curves";
import { byId, dot, make } from "./elements";
import { familiesOf, familyColour, familyLabel } from "./families";
import { drawFunctions, drawGrid } from "./grids";
import "./report.css";
import type { ReportPage } from "./reportPage";
import { RolesTable } from "./rolesTable";
import { drawScatter } from "./scatter";
import { Tip } from "./tip";

const RESIZED = 120; // ms

class Report implements ReportPage {
  readonly contents = new Contents(JSON.parse(byId("data").textContent ?? "") as ReportJson);
  readonly tip = new Tip(byId("tip"));
  private readonly table: RolesTable;
  choice: Choice = choiceOf(location.hash, this.contents);

  constructor(public theme: Theme) {
    const families = familiesOf(this.contents, this.contents.allHeads);
    this.table = new RolesTable(
      this,
      families.map(({ key }) => make("option", { value: key }, [familyLabel(key)])),
    );
    this.listen();
    this.setTheme(theme);
  }

  choose(change: Partial<Choice>): void {
    const { head } = this.choice;
    this.choice = { ...this.choice, ...change };
    history.replaceState(null, "", hashOf(this.choice));
    if ("head" in change) {
      this.tip.hide();
      drawCard(this);
      this.markHead();
    }
    if ("measure" in change) drawGrid(this);
    // A card takes room from what is beside it.
    const isMoved = (this.choice.head === null) !== (head === null);
    if ("x" in change || "y" in change || isMoved) drawScatter(this);
  }

  private draw(): void {
    drawCard(this);
    this.drawTop();
    drawGrid(this);
    drawFunctions(this);
    drawCurves(this);
    drawScatter(this);
    this.table.draw();
  }

  private drawTop(): void {
    const { contents, theme } = this;
    byId("chips").replaceChildren(
      ...familiesOf(contents, contents.allHeads).map(({ key, count }) =>
        make("button", { class: "chip" }, [dot(css(familyColour(theme, key))), `${count} ${familyLabel(key)}`], {
          click: () => {
            this.table.filter(key);
            byId("roles").scrollIntoView();
          },
        }),
      ),
    );
    const answers = contents.json.findings.map(({ question, answer }) =>
      make("div", { class: "panel" }, [make("b", {}, [question]), answer]),
    );
    byId("came").replaceChildren(...answers);
  }

  /** The head whose card is open, wherever it is drawn. */
  private markHead(): void {
    const { head } = this.choice;
    for (const cell of document.querySelectorAll<HTMLElement>(".cell[data-head]")) {
      cell.setAttribute("aria-pressed", String(cell.dataset.head === head));
    }
    for (const drawn of document.querySelectorAll<HTMLElement | SVGElement>("#scatter circle, #table-body tr")) {
      drawn.classList.toggle("on", drawn.dataset.head === head);
    }
  }

  private setTheme(theme: Theme): void {
    this.theme = theme;
    document.documentElement.dataset.theme = theme.name;
    byId("theme").textContent = theme === DARK ? "Light" : "Dark";
    this.draw();
  }

  private listen(): void {
    byId("theme").addEventListener("click", () => this.setTheme(this.theme === DARK ? LIGHT : DARK));
    SYSTEM.addEventListener("change", () => this.setTheme(systemTheme()));
    for (const button of document.querySelectorAll<HTMLElement>("nav button")) {
      button.addEventListener("click", () => byId(button.dataset.to as string).scrollIntoView());
    }
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.choice.head) this.choose({ head: null });
    });
    addEventListener("hashchange", () => {
      this.choice = choiceOf(location.hash, this.contents);
      this.draw();
    });
    let timer = 0;
    addEventListener("resize", () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => drawScatter(this), RESIZED);
    });
  }
}

const SYSTEM = matchMedia("(prefers-color-scheme: dark)");

function systemTheme(): Theme {
  return SYSTEM.matches ? DARK : LIGHT;
}

new Report(systemTheme());
document.body.dataset.ready = "true";
