// The report of heads: draws everything from the data in the page, and asks nothing of anyone else.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);

  // Making elements: text is always text, never markup.
  function make(tag, options = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (value === null || value === undefined) continue;
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "style") element.style.cssText = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((one) => one !== null && one !== undefined));
    return element;
  }
  function draw(tag, options = {}, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // Numbers
  const isKnown = (value) => typeof value === "number" && Number.isFinite(value);
  function told(value, unit = "") {
    if (!isKnown(value)) return "–";
    const size = Math.abs(value);
    const text = size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 0.095 || size === 0 ? value.toFixed(2) : value.toFixed(3);
    return (text.replace("-", "−")) + (unit ? ` ${unit}` : "");
  }
  const measures = new Map(data.measures.map((one) => [one.name, one]));
  const place = new Map(data.heads.map((name, index) => [name, index]));
  const layerOf = [];
  const stackOf = [];
  data.stacks.forEach((stack, number) => stack.layers.forEach((layer, depth) => layer.heads.forEach((head) => {
    layerOf[head] = depth;
    stackOf[head] = number;
  })));

  function range(measure) {
    const known = measure.values.filter(isKnown);
    if (!known.length) return { low: 0, high: 1, signed: false };
    const low = Math.min(...known), high = Math.max(...known);
    if (low < 0) { const most = Math.max(-low, high); return { low: -most, high: most, signed: true }; }
    return { low: 0, high: high || 1, signed: false };
  }
  function mean(values) { return values.length ? values.reduce((a, b) => a + b, 0) / values.length : NaN; }
  function rank(values) {
    const order = values.map((value, index) => [value, index]).sort((a, b) => a[0] - b[0]);
    const ranks = new Array(values.length);
    for (let i = 0; i < order.length;) {
      let j = i;
      while (j < order.length && order[j][0] === order[i][0]) j++;
      for (let k = i; k < j; k++) ranks[order[k][1]] = (i + j - 1) / 2;
      i = j;
    }
    return ranks;
  }
  function spearman(xs, ys) {
    if (xs.length < 3) return NaN;
    const a = rank(xs), b = rank(ys), ma = mean(a), mb = mean(b);
    let top = 0, one = 0, other = 0;
    a.forEach((value, i) => { top += (value - ma) * (b[i] - mb); one += (value - ma) ** 2; other += (b[i] - mb) ** 2; });
    return one && other ? top / Math.sqrt(one * other) : NaN;
  }

  // Colours
  const hex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const blend = (one, other, share) => one.map((value, i) => Math.round(value + (other[i] - value) * share));
  const RAMPS = {
    light: [hex("#ffffff"), hex("#8fb2e8"), hex("#12306b")],
    dark: [hex("#1a1c20"), hex("#6a5acd"), hex("#ffe2a8")],
  };
  const SIGNED = { light: [hex("#d95f02"), hex("#ffffff"), hex("#2166ac")], dark: [hex("#ff9e57"), hex("#1a1c20"), hex("#6db1ff")] };
  const isDark = () => root.dataset.theme === "dark";
  function ramp(share, signed) {
    const stops = (signed ? SIGNED : RAMPS)[isDark() ? "dark" : "light"];
    const at = Math.max(0, Math.min(1, share)) * 2;
    return at <= 1 ? blend(stops[0], stops[1], at) : blend(stops[1], stops[2], at - 1);
  }
  const css = (rgb) => `rgb(${rgb.join(",")})`;
  const share = (value, { low, high }) => (value - low) / (high - low || 1);

  // Families of roles. Tol's bright and muted colours; a short name says the same without colour.
  const FAMILIES = [
    ["position", "position", "#4477aa", "#7aa6d6"], ["syntax", "syntax", "#228833", "#4fb862"],
    ["copying", "copying", "#aa3377", "#d96aa7"], ["rare", "rare words", "#9a8a12", "#ddcc55"],
    ["across", "between sentences", "#2795b8", "#66ccee"], ["marks", "marks and names", "#d14b5f", "#ee8090"],
    ["image", "patches", "#b85c00", "#f39a4a"], ["rest", "at rest", "#777b82", "#9aa0a8"], ["none", "no clear role", "#c3c5c8", "#565c66"],
  ];
  const family = new Map(FAMILIES.map(([key, label, light, dark]) => [key, { label, light, dark }]));
  const familyColour = (key) => family.get(key)[isDark() ? "dark" : "light"];
  const verdict = (index) => data.roles[index];

  // What is chosen, kept in the address
  const state = { head: null, measure: null, x: null, y: null };
  const first = (...names) => names.find((name) => measures.has(name)) ?? data.measures[0]?.name ?? null;
  function read() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const known = (name, fallback) => (measures.has(asked.get(name)) ? asked.get(name) : fallback);
    state.measure = known("measure", first("confidence_plain", "confidence"));
    state.x = known("x", first("distance_plain", "patch_distance", "distance"));
    state.y = known("y", first("relevance", "confidence_plain", "confidence"));
    state.head = place.has(asked.get("head")) ? asked.get("head") : null;
  }
  function write() {
    const said = new URLSearchParams();
    for (const [name, value] of Object.entries(state)) if (value) said.set(name, value);
    history.replaceState(null, "", `#${said}`);
  }

  // The tip, where the pointer is
  const tip = $("tip");
  function showTip(event, ...lines) {
    tip.replaceChildren(...lines.filter(Boolean).map((line, at) => make(at ? "div" : "b", { text: line })));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const at = event.clientX === undefined || (event.clientX === 0 && event.clientY === 0) ? event.target.getBoundingClientRect() : null;
    const x = at ? at.right : event.clientX, y = at ? at.bottom : event.clientY;
    tip.style.left = `${Math.max(4, Math.min(innerWidth - box.width - 4, x + 12))}px`;
    tip.style.top = `${y + 16 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 16}px`;
  }
  const hideTip = () => { tip.hidden = true; };
  const about = (index, measure) => [
    `${data.heads[index]}: ${verdict(index).role}`,
    measure ? `${measure.label} ${told(measure.values[index], measure.unit)}${interval(measure, index)}` : "",
    measure && isKnown(measure.baselines?.[index]) ? `baseline ${told(measure.baselines[index], measure.unit)}` : "",
  ];
  function interval(measure, index) {
    return isKnown(measure.low?.[index]) ? ` (${told(measure.low[index])} to ${told(measure.high[index])})` : "";
  }

  // Grids of heads
  function cell(index, options) {
    const button = make("button", {
      class: `cell${options.none ? " none" : ""}`, "data-head": data.heads[index], "aria-pressed": data.heads[index] === state.head,
      "aria-label": options.label, tabindex: "-1", onclick: () => open(data.heads[index]), onpointerenter: (event) => showTip(event, ...options.tip),
      onfocus: (event) => { if (event.target.matches(":focus-visible")) showTip(event, ...options.tip); }, onpointerleave: hideTip, onblur: hideTip,
    });
    if (options.colour) button.style.background = options.colour;
    if (options.text) button.textContent = options.text;
    if (options.ink) button.style.color = options.ink;
    return button;
  }
  function inkOn(rgb) { return rgb[0] * 0.299 + rgb[1] * 0.587 + rgb[2] * 0.114 > 140 ? "#1c1d1f" : "#ffffff"; }
  function byMeasure(index, measure, limits) {
    const value = measure.values[index];
    const known = isKnown(value);
    const rgb = known ? ramp(share(value, limits), limits.signed) : null;
    return { none: !known, colour: rgb && css(rgb), label: `${data.heads[index]}, ${measure.label} ${told(value)}`, tip: about(index, measure) };
  }
  function byRole(index) {
    const found = verdict(index), rgb = hex(familyColour(found.family));
    return { colour: css(rgb), ink: inkOn(rgb), text: found.short, label: `${data.heads[index]}, ${found.role}`, tip: about(index) };
  }
  // Arrow keys walk through a grid; one cell of it is in the order of tabs.
  function walk(grid, columns) {
    const cells = [...grid.querySelectorAll(".cell")];
    if (cells.length) (cells.find((one) => one.getAttribute("aria-pressed") === "true") ?? cells[0]).tabIndex = 0;
    grid.addEventListener("keydown", (event) => {
      const at = cells.indexOf(document.activeElement);
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
      if (step === undefined || at < 0) return;
      event.preventDefault();
      const next = cells[at + step];
      if (next) { cells[at].tabIndex = -1; next.tabIndex = 0; next.focus(); }
    });
  }
  /** Layers as rows and heads as columns, one grid a stack. */
  function layersGrid(options) {
    return data.stacks.map((stack) => {
      const columns = Math.max(...stack.layers.map((layer) => layer.heads.length));
      const size = columns > 24 ? 16 : columns > 12 ? 32 : 72;
      const grid = make("div", { class: "grid", role: "group", style: `grid-template-columns:max-content repeat(${columns}, minmax(16px, ${size}px))` });
      grid.append(make("span", { class: "axis" }), ...Array.from({ length: columns }, (_, at) => make("span", { class: "axis", text: columns > 24 && at % 4 ? "" : `H${at}` })));
      for (const layer of stack.layers) {
        grid.append(make("span", { class: "axis", text: layer.site }));
        for (let at = 0; at < columns; at++) grid.append(at < layer.heads.length ? cell(layer.heads[at], options(layer.heads[at])) : make("span"));
      }
      walk(grid, columns);
      return make("div", { class: "scroll", style: `flex:1 1 ${Math.min(560, 60 + columns * 34)}px` }, stack.label ? make("div", { class: "small", text: stack.label }) : null, grid);
    });
  }
  /** Layers as columns, each with its heads in a given order, as in Voita et al. (2019), figure 2. */
  function orderedGrid(stack, order, options) {
    const columns = stack.layers.length, rows = Math.max(...stack.layers.map((layer) => layer.heads.length));
    const grid = make("div", { class: "grid", role: "group", style: `grid-template-columns:repeat(${columns}, minmax(20px, 42px))` });
    const sorted = stack.layers.map((layer) => [...layer.heads].sort((a, b) => order(b) - order(a) || a - b));
    for (let row = 0; row < rows; row++) for (const heads of sorted) grid.append(row < heads.length ? cell(heads[row], options(heads[row])) : make("span"));
    for (const layer of stack.layers) grid.append(make("span", { class: "axis", text: layer.site.replace(/^.*\./, "") }));
    walk(grid, columns);
    return make("div", { class: "scroll" }, grid);
  }
  function legend(measure) {
    const limits = range(measure);
    const canvas = make("canvas", { width: 160, height: 1, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    for (let x = 0; x < 160; x++) { context.fillStyle = css(ramp(x / 159, limits.signed)); context.fillRect(x, 0, 1, 1); }
    return make("span", { class: "legend" }, told(limits.low), canvas, told(limits.high, measure.unit));
  }
  function chooser(name, change) {
    const select = make("select", { id: `choose-${name}`, onchange: () => { state[name] = select.value; write(); change(); } });
    const groups = new Map();
    for (const one of data.measures) {
      if (!groups.has(one.group)) { groups.set(one.group, make("optgroup", { label: one.group })); select.append(groups.get(one.group)); }
      groups.get(one.group).append(make("option", { value: one.name, text: one.label }));
    }
    select.value = state[name];
    return select;
  }

  // Sections
  function drawTop() {
    $("chips").replaceChildren(...FAMILIES.map(([key]) => key).filter((key) => data.roles.some((one) => one.family === key)).map((key) => {
      const count = data.roles.filter((one) => one.family === key).length;
      return make("button", { class: "chip", onclick: () => { $("filter-role").value = key; drawTable(); $("roles").scrollIntoView(); } },
        make("span", { class: "dot", style: `background:${familyColour(key)}` }), `${count} ${family.get(key).label}`);
    }));
    $("came").replaceChildren(...data.findings.map((one) => make("div", { class: "panel" }, make("b", { text: one.question }), one.answer)));
  }
  function drawGrid() {
    const measure = measures.get(state.measure);
    if (!measure) return;
    const limits = range(measure);
    $("grid").replaceChildren(...layersGrid((index) => byMeasure(index, measure, limits)));
    const sample = `${measure.about}${measure.about ? ". " : ""}${measure.n_samples.toLocaleString("en")} examples${isKnown(measure.baseline) ? `, baseline ${told(measure.baseline, measure.unit)} on average` : ""}.`;
    $("grid-tools").replaceChildren(make("label", {}, "Colour by", chooser("measure", drawGrid)), legend(measure));
    $("grid-note").textContent = sample;
  }
  function drawThree() {
    const relevance = measures.get("relevance"), confidence = measures.get("confidence_plain") ?? measures.get("confidence");
    const order = relevance ?? confidence;
    if (!order) { $("three").closest("section").hidden = true; return; }
    const score = (index) => (isKnown(order.values[index]) ? order.values[index] : -Infinity);
    const stacks = data.stacks.map((stack) => {
      const panels = [], tag = stack.label ? `${stack.label}: ` : "";
      const add = (title, options) => panels.push(make("div", {}, make("h3", { text: tag + title }), orderedGrid(stack, score, options)));
      if (relevance) { const limits = range(relevance); add("relevance", (index) => byMeasure(index, relevance, limits)); }
      if (confidence) { const limits = range(confidence); add("confidence", (index) => byMeasure(index, confidence, limits)); }
      add("functions", byRole);
      return make("div", { class: "three" }, ...panels);
    });
    $("three").replaceChildren(...stacks);
    $("three-note").textContent = `Layers are columns; within each, heads go by ${relevance ? "relevance" : "confidence"}, so a head has the same place in every panel (after Voita et al., 2019, figure 2).${relevance ? "" : ` No relevance: ${data.absent.relevance ?? "it was not asked for"}`}`;
  }
  const LINES = ["#4477aa", "#aa3377", "#228833", "#b85c00"];
  const LINES_DARK = ["#7aa6d6", "#d96aa7", "#4fb862", "#f39a4a"];
  function curve(measure) {
    const width = 190, height = 84, left = 26, bottom = 12, top = 6;
    const known = measure.values.filter(isKnown);
    const base = isKnown(measure.baseline) ? [measure.baseline] : [];
    let low = Math.min(0, ...known), high = Math.max(...known, ...base);
    if (!(high > low)) high = low + 1;
    const depth = Math.max(...data.stacks.map((stack) => stack.layers.length));
    const x = (layer) => left + (depth > 1 ? (layer / (depth - 1)) * (width - left - 6) : (width - left) / 2);
    const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - top);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
    svg.append(draw("line", { x1: left, x2: width - 4, y1: y(low), y2: y(low), stroke: "var(--line)" }));
    if (base.length) svg.append(draw("line", { x1: left, x2: width - 4, y1: y(base[0]), y2: y(base[0]), stroke: "var(--tertiary)", "stroke-dasharray": "2 3" }));
    data.stacks.forEach((stack, number) => {
      const colour = (isDark() ? LINES_DARK : LINES)[number % 4];
      const points = [];
      stack.layers.forEach((layer, at) => {
        const values = layer.heads.map((head) => measure.values[head]).filter(isKnown);
        for (const value of values) svg.append(draw("circle", { cx: x(at), cy: y(value), r: 1.6, fill: colour, opacity: 0.35 }));
        if (values.length) points.push(`${x(at)},${y(mean(values))}`);
      });
      svg.append(draw("polyline", { points: points.join(" "), fill: "none", stroke: colour, "stroke-width": 1.8 }));
    });
    svg.append(draw("text", { x: left - 3, y: y(high) + 4, "text-anchor": "end", text: told(high) }), draw("text", { x: left - 3, y: y(low), "text-anchor": "end", text: told(low) }));
    svg.append(draw("text", { x: left, y: height - 1, text: "L0" }), draw("text", { x: width - 4, y: height - 1, "text-anchor": "end", text: `L${depth - 1}` }));
    return make("button", { class: "panel curve", title: measure.about, "data-measure": measure.name,
      onclick: () => { state.measure = measure.name; write(); drawGrid(); $("heads").scrollIntoView(); } },
      make("b", { text: measure.label }), svg);
  }
  function drawCurves() {
    const main = data.measures.filter((one) => !one.is_part), parts = data.measures.filter((one) => one.is_part);
    $("curves").replaceChildren(...main.map(curve));
    const keys = data.stacks.length > 1 ? data.stacks.map((stack, at) => make("span", { class: "chip" }, make("span", { class: "dot", style: `background:${(isDark() ? LINES_DARK : LINES)[at % 4]}` }), stack.label)) : [];
    $("curves-key").replaceChildren(...keys);
    const more = $("curves-more");
    more.hidden = !parts.length;
    more.querySelector("summary").textContent = `Relations, tags and other parts (${parts.length})`;
    const fill = () => { if (more.open) more.querySelector(".curves").replaceChildren(...parts.map(curve)); };
    more.ontoggle = fill;
    fill();
  }
  function drawScatter() {
    const one = measures.get(state.x), other = measures.get(state.y);
    if (!one || !other) return;
    const box = $("scatter");
    const width = Math.max(280, box.clientWidth || 800), height = box.clientHeight || 420, left = 46, bottom = 34, top = 10, right = 12;
    const shown = data.heads.map((_, index) => index).filter((index) => isKnown(one.values[index]) && isKnown(other.values[index]));
    const extent = (measure) => {
      const values = shown.map((index) => measure.values[index]);
      const low = Math.min(...values), high = Math.max(...values), room = (high - low || 1) * 0.06;
      return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
    };
    box.replaceChildren();
    $("scatter-tools").replaceChildren(make("label", {}, "Across", chooser("x", drawScatter)), make("label", {}, "Up", chooser("y", drawScatter)));
    if (!shown.length) { $("scatter-note").textContent = "No head has both."; return; }
    const [x0, x1] = extent(one), [y0, y1] = extent(other);
    const x = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right);
    const y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - bottom - top);
    box.setAttribute("viewBox", `0 0 ${width} ${height}`);
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const vx = x0 + (x1 - x0) * share, vy = y0 + (y1 - y0) * share;
      box.append(draw("line", { x1: left, x2: width - right, y1: y(vy), y2: y(vy), stroke: "var(--line)" }), draw("text", { x: left - 6, y: y(vy) + 3, "text-anchor": "end", text: told(vy) }));
      box.append(draw("line", { x1: x(vx), x2: x(vx), y1: top, y2: height - bottom, stroke: "var(--line)" }), draw("text", { x: x(vx), y: height - bottom + 13, "text-anchor": "middle", text: told(vx) }));
    }
    box.append(draw("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", text: one.label + (one.unit ? `, ${one.unit}` : "") }));
    box.append(draw("text", { x: 0, y: 0, transform: `translate(11 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle", text: other.label + (other.unit ? `, ${other.unit}` : "") }));
    for (const index of shown) {
      box.append(draw("circle", {
        cx: x(one.values[index]), cy: y(other.values[index]), r: 5.5, fill: familyColour(verdict(index).family), class: data.heads[index] === state.head ? "on" : "",
        "data-head": data.heads[index], onclick: () => open(data.heads[index]), onpointerleave: hideTip,
        onpointerenter: (event) => showTip(event, ...about(index, one), `${other.label} ${told(other.values[index], other.unit)}`),
      }));
    }
    const agree = spearman(shown.map((index) => one.values[index]), shown.map((index) => other.values[index]));
    $("scatter-note").textContent = `${shown.length} heads. Rank correlation (Spearman) ${told(agree)}. Point at a head for its name; click for its card.`;
    $("scatter-key").replaceChildren(...FAMILIES.map(([key]) => key).filter((key) => shown.some((index) => verdict(index).family === key))
      .map((key) => make("span", { class: "row", style: "gap:6px;margin:0" }, make("span", { class: "dot", style: `background:${familyColour(key)}` }), family.get(key).label)));
  }

  // The roles table
  const COLUMNS = [
    ["head", "Head", (index) => index, ""], ["role", "Role", (index) => verdict(index).role, ""], ["score", "Score", (index) => verdict(index).findings[0]?.score, "n"],
    ["baseline", "Baseline", (index) => verdict(index).findings[0]?.baseline, "n"], ["interval", "95 % interval", (index) => verdict(index).findings[0]?.low, "n wide"],
    ["also", "Also, or nearest", (index) => verdict(index).findings.length, "wide"],
  ];
  const sorting = { by: "head", down: false };
  function drawTable() {
    const wanted = $("filter-role").value, text = $("filter-text").value.trim().toLowerCase();
    const column = COLUMNS.find(([name]) => name === sorting.by);
    const rows = data.heads.map((_, index) => index).filter((index) => {
      const found = verdict(index);
      const words = `${data.heads[index]} ${found.findings.map((one) => one.role).join(" ")} ${found.role}`.toLowerCase();
      return (!wanted || found.family === wanted) && (!text || words.includes(text));
    });
    rows.sort((a, b) => {
      const one = column[2](a), other = column[2](b);
      if (one === other) return a - b;
      if (one === undefined || one === null) return 1;
      if (other === undefined || other === null) return -1;
      const order = typeof one === "string" ? one.localeCompare(other) : one - other;
      return (sorting.down ? -order : order) || a - b;
    });
    $("table-head").replaceChildren(...COLUMNS.map(([name, label, , kind]) => make("th", { class: kind, scope: "col", "aria-sort": sorting.by === name ? (sorting.down ? "descending" : "ascending") : null },
      make("button", { text: label + (sorting.by === name ? (sorting.down ? " ↓" : " ↑") : ""), onclick: () => { sorting.down = sorting.by === name ? !sorting.down : name !== "head" && name !== "role"; sorting.by = name; drawTable(); } }))));
    $("table-body").replaceChildren(...rows.map((index) => {
      const found = verdict(index), best = found.findings[0];
      const others = best ? found.findings.slice(1).map((one) => `${one.role} ${told(one.score)}`).join(", ")
        : found.nearest ? `nearest: ${found.nearest.role} ${told(found.nearest.score)} (needs ${found.nearest.criterion})` : "";
      return make("tr", { "data-head": data.heads[index], class: data.heads[index] === state.head ? "on" : "", onclick: () => open(data.heads[index]) },
        make("td", { class: "name" }, make("button", { text: data.heads[index] })),
        make("td", {}, make("span", { class: "dot", style: `display:inline-block;margin-right:6px;background:${familyColour(found.family)}` }), found.role),
        make("td", { class: "n", text: best ? told(best.score) : "" }), make("td", { class: "n", text: best ? told(best.baseline) : "" }),
        make("td", { class: "n wide", text: best && isKnown(best.low) ? `${told(best.low)} to ${told(best.high)}` : "" }), make("td", { class: "wide", text: others }));
    }));
    $("table-note").textContent = `${rows.length} of ${data.heads.length} heads`;
  }

  // The card
  function findingBox(one) {
    const bar = make("div", { class: "bar", role: "img", "aria-label": `score ${told(one.score)}, baseline ${told(one.baseline)}` }, make("i", { style: `width:${Math.max(0, Math.min(100, one.score * 100))}%` }));
    if (isKnown(one.low)) bar.append(make("s", { style: `left:${one.low * 100}%;width:${Math.max(0.5, (one.high - one.low) * 100)}%` }));
    if (isKnown(one.baseline)) bar.append(make("u", { style: `left:${Math.min(100, one.baseline * 100)}%`, title: `baseline ${told(one.baseline)}` }));
    return make("div", { class: "finding" }, make("div", { class: "line" }, make("span", { class: "name", style: "white-space:normal", text: one.role }), make("span", { text: told(one.score) })), bar,
      make("div", { class: "small", text: `${isKnown(one.low) ? `95 %: ${told(one.low)} to ${told(one.high)}. ` : ""}Baseline ${told(one.baseline)}. ${one.n_samples.toLocaleString("en")} examples. Criterion ${one.criterion} (${one.source}).` }));
  }
  function bytes(text) { return Uint8Array.from(atob(text), (one) => one.charCodeAt(0)); }
  function thumbnail(index, example) {
    const { rows, columns, maps } = data.thumbnails[example].sites[data.siteOf[index]] ?? {};
    if (!maps) return null;
    const all = data.thumbnails[example].cache ??= new Map();
    const key = data.siteOf[index];
    if (!all.has(key)) all.set(key, bytes(maps));
    const offset = data.indexOf[index] * rows * columns, found = all.get(key);
    const canvas = make("canvas", { width: columns, height: rows, role: "img", "aria-label": `pattern of ${data.heads[index]} on “${data.thumbnails[example].text.slice(0, 60)}”` });
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
    for (let at = 0; at < rows * columns; at++) {
      const rgb = ramp(found[offset + at] / 255, false);
      image.data.set([...rgb, 255], at * 4);
    }
    context.putImageData(image, 0, 0);
    return make("div", {}, canvas, make("span", { class: "small", title: data.thumbnails[example].text, dir: "auto", text: data.thumbnails[example].text || `image ${example + 1}` }));
  }
  function caseBox(one) {
    const box = make("div", { class: "case" });
    const shown = make("div");
    const choose = (at) => {
      buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(number === at)));
      shown.replaceChildren(one.image ? pictureCase(one, one.pairs[at]) : textCase(one, one.pairs[at]));
    };
    const grid = (patch) => (patch < 0 ? "special token" : `row ${Math.floor(patch / one.grid[1]) + 1}, column ${(patch % one.grid[1]) + 1}`);
    const name = (tokens, places) => places.map((at) => tokens[at][0]).join("") || "␣";
    const buttons = one.pairs.map((pair, at) => {
      const [from, to] = one.image ? [grid(pair[0]), grid(pair[1])] : ((ends) => [name(one.queries ?? one.tokens, ends[0]), name(one.tokens, ends[1])])(wordsOf(one, pair));
      return make("button", { class: "pair", onclick: () => choose(at) }, make("em", { text: from, dir: "auto" }), " → ", make("strong", { text: to, dir: "auto" }), ` ${told(pair[2])}`);
    });
    box.append(shown, make("div", {}, ...buttons), make("div", { class: "small", text: one.id + (isKnown(one.score) ? ` · ${told(one.score)} over the example` : "") }));
    choose(0);
    return box;
  }
  function tokensLine(tokens, marks) {
    const line = make("p", { class: "text", dir: "auto" });
    tokens.forEach(([text, space, special], at) => {
      if (space) line.append(" ");
      line.append(make("span", { class: [special ? "special" : "", ...(marks[at] ?? [])].join(" ").trim(), text }));
    });
    return line;
  }
  // The whole words of a pair; pieces of one and the same word stay pieces.
  function wordsOf(one, pair) {
    const queries = one.queries ?? one.tokens, word = (tokens, at) => tokens[at][3];
    const whole = (tokens, at) => (word(tokens, at) < 0 ? [at] : tokens.map((_, other) => other).filter((other) => word(tokens, other) === word(tokens, at)));
    if (!one.queries && word(queries, pair[0]) >= 0 && word(queries, pair[0]) === word(one.tokens, pair[1])) return [[pair[0]], [pair[1]]];
    return [whole(queries, pair[0]), whole(one.tokens, pair[1])];
  }
  function textCase(one, pair) {
    const [from, to] = wordsOf(one, pair);
    const marks = (places, kind, into = {}) => { for (const at of places) into[at] = [...(into[at] ?? []), kind]; return into; };
    if (one.queries) return make("div", {}, tokensLine(one.tokens, marks(to, "k")), tokensLine(one.queries, marks(from, "q")));
    return tokensLine(one.tokens, marks(to, "k", marks(from, "q")));
  }
  function pictureCase(one, pair) {
    const [rows, columns] = one.grid, size = 160;
    const canvas = make("canvas", { class: "picture", width: size * 2, height: size * 2, role: "img", "aria-label": `${one.id}: the patch that looks, and the one it looks at` });
    const context = canvas.getContext("2d"), picture = new Image();
    const centre = (patch) => [((patch % columns) + 0.5) * (2 * size / columns), (Math.floor(patch / columns) + 0.5) * (2 * size / rows)];
    picture.onload = () => {
      context.imageSmoothingEnabled = false;
      context.drawImage(picture, 0, 0, 2 * size, 2 * size);
      for (const [patch, colour] of [[pair[0], "#2fd27e"], [pair[1], "#ff4fa0"]]) {
        if (patch < 0) continue;
        const [x, y] = centre(patch), w = 2 * size / columns, h = 2 * size / rows;
        context.lineWidth = 5; context.strokeStyle = "#000"; context.strokeRect(x - w / 2, y - h / 2, w, h);
        context.lineWidth = 3; context.strokeStyle = colour; context.strokeRect(x - w / 2, y - h / 2, w, h);
      }
    };
    picture.src = one.image;
    return make("div", {}, canvas);
  }
  function drawCard() {
    const card = $("card");
    card.hidden = !state.head;
    document.body.classList.toggle("open", !!state.head);
    if (!state.head) return;
    const index = place.get(state.head), found = verdict(index);
    const parts = [make("div", { class: "top" }, make("h2", { text: state.head, id: "card-name" }), make("button", { class: "quiet", text: "Close", onclick: close }))];
    parts.push(make("p", {}, make("span", { class: "dot", style: `display:inline-block;margin-right:6px;background:${familyColour(found.family)}` }), found.role));
    if (found.findings.length) parts.push(...found.findings.slice(0, 5).map(findingBox));
    if (found.findings.length > 5) parts.push(make("p", { class: "small", text: `and ${found.findings.slice(5).map((one) => `${one.role} ${told(one.score)}`).join(", ")}` }));
    if (!found.findings.length) {
      parts.push(make("p", { class: "note", text: "No criterion is met. That is an answer: what it does, if anything, is none of what was looked for." }));
      if (found.nearest) parts.push(make("h3", { text: "Nearest" }), findingBox(found.nearest));
    }
    const thumbs = data.thumbnails.map((_, example) => thumbnail(index, example)).filter(Boolean);
    if (thumbs.length) parts.push(make("h3", { text: "Patterns: queries down, keys across (square-root scale)" }), make("div", { class: "thumbs" }, ...thumbs));
    const cases = data.cases[index] ?? [];
    if (cases.length) parts.push(make("h3", { text: `Strongest cases: ${cases[0].about}` }), make("p", { class: "small" }, "from the ", make("span", { style: "color:var(--query)", text: "query" }), " to the ", make("span", { style: "color:var(--key)", text: "key" }), " it looks at"), ...cases.map(caseBox));
    const body = make("tbody");
    for (const one of data.measures) if (isKnown(one.values[index])) body.append(make("tr", {}, make("td", { text: one.label, title: one.about }), make("td", { class: "n", text: told(one.values[index], one.unit) }), make("td", { class: "n small", text: interval(one, index).trim() })));
    parts.push(make("details", {}, make("summary", { text: "All scores" }), make("table", {}, body)));
    card.replaceChildren(...parts);
    card.scrollTop = 0;
  }
  function mark() {
    for (const one of document.querySelectorAll(".cell[data-head]")) one.setAttribute("aria-pressed", String(one.dataset.head === state.head));
    for (const one of document.querySelectorAll("#scatter circle")) one.setAttribute("class", one.dataset.head === state.head ? "on" : "");
    for (const one of document.querySelectorAll("#table-body tr")) one.classList.toggle("on", one.dataset.head === state.head);
  }
  function open(name) { choose(name); $("card").scrollTop = 0; }
  function close() { choose(null); }
  function choose(name) {
    const changes = !state.head !== !name; // the card takes room from what is beside it
    state.head = name;
    write();
    hideTip();
    drawCard();
    if (changes) drawScatter();
    mark();
  }

  // Everything
  function drawAll() { drawCard(); drawTop(); drawGrid(); drawThree(); drawCurves(); drawScatter(); drawTable(); }
  function theme(name) {
    root.dataset.theme = name;
    $("theme").textContent = name === "dark" ? "Light" : "Dark";
    drawAll();
  }
  for (const [key] of FAMILIES) if (data.roles.some((one) => one.family === key)) $("filter-role").append(make("option", { value: key, text: family.get(key).label }));
  $("filter-role").addEventListener("change", drawTable);
  $("filter-text").addEventListener("input", drawTable);
  $("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  addEventListener("keydown", (event) => { if (event.key === "Escape" && state.head) close(); });
  addEventListener("hashchange", () => { read(); drawAll(); });
  for (const one of document.querySelectorAll("nav button")) one.addEventListener("click", () => $(one.dataset.to).scrollIntoView());
  let later = 0;
  addEventListener("resize", () => { clearTimeout(later); later = setTimeout(drawScatter, 120); });
  read();
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", () => theme(system.matches ? "dark" : "light"));
  theme(system.matches ? "dark" : "light");
  document.body.dataset.ready = "true";
})();
