/** The report of a sweep: draws everything from the data in its page, and asks nothing of anyone else. */

import { DARK, LIGHT, type Theme } from "../../theme";
import { byId, make } from "../elements";
import "../report.css";
import { Tip } from "../tip";
import "./prune.css";
import { drawAlternatives } from "./alternatives";
import type { PrunePage } from "./prunePage";
import { drawTable } from "./resultsTable";
import { drawRoles } from "./roleBars";
import { drawScores } from "./scorePanel";
import { drawSmaller } from "./smallerModel";
import { drawSurvivors } from "./survivors";
import type { Point, SweepJson } from "./sweep";
import { drawLayers, drawTypes } from "./typesFigure";

const RESIZED = 120; // ms
const NARROWEST = 280; // px
const WIDEST = 860; // px
const PADDING = 34; // px of a panel, left and right, with its border

class SweepReport implements PrunePage {
  readonly sweep = JSON.parse(byId("data").textContent ?? "") as SweepJson;
  readonly tip = new Tip(byId("tip"));
  point: Point | undefined = this.pointOf(location.hash.slice(1)) ?? this.first();
  width = WIDEST;
  readonly hiddenSeries = new Set<string>();

  constructor(public theme: Theme) {
    this.listen();
    this.setTheme(theme);
  }

  choose(id: string | undefined): void {
    this.point = this.pointOf(id ?? "") ?? this.point;
    if (this.point) history.replaceState(null, "", `#${encodeURIComponent(this.point.id)}`);
    this.tip.hide();
    drawSurvivors(this);
  }

  toggleSeries(key: string): void {
    if (!this.hiddenSeries.delete(key)) this.hiddenSeries.add(key);
    drawScores(this);
    const legend = [...document.querySelectorAll<HTMLElement>("#score-panels button")];
    legend.find(({ dataset }) => dataset.series === key)?.focus();
  }

  private pointOf(id: string): Point | undefined {
    return this.sweep.points.find((point) => point.id === decodeURIComponent(id));
  }

  /** The point that the smaller model is of, else the first that loses a head. */
  private first(): Point | undefined {
    const { points } = this.sweep;
    return points.find(({ is_chosen }) => is_chosen) ?? points.find(({ total }) => total[0] < total[1]) ?? points[0];
  }

  private draw(): void {
    const room = document.querySelector("main section")?.clientWidth ?? WIDEST;
    this.width = Math.max(NARROWEST, Math.min(WIDEST, room - PADDING));
    drawScores(this);
    drawAlternatives(this);
    drawSurvivors(this);
    drawRoles(this);
    drawTypes(this);
    drawLayers(this);
    drawTable(this);
    drawSmaller(this);
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
    byId("csv").addEventListener("click", () => download(this.sweep.csv, "points.csv"));
    let timer = 0;
    addEventListener("resize", () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => this.draw(), RESIZED);
    });
  }
}

function download(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = make("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

const SYSTEM = matchMedia("(prefers-color-scheme: dark)");

function systemTheme(): Theme {
  return SYSTEM.matches ? DARK : LIGHT;
}

new SweepReport(systemTheme());
document.body.dataset.ready = "true";
