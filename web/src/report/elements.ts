/** Making elements: text is always text, never markup. */

type Attributes = Record<string, string | number | boolean | null | undefined>;
type Children = (Node | string | null)[];
type Listeners = { [K in keyof GlobalEventHandlersEventMap]?: (event: GlobalEventHandlersEventMap[K]) => void };

export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  children: Children = [],
  listeners: Listeners = {},
): HTMLElementTagNameMap[Tag] {
  return filled(document.createElement(tag), attributes, children, listeners);
}

export function makeSvg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  children: Children = [],
  listeners: Listeners = {},
): SVGElementTagNameMap[Tag] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children, listeners);
}

/** An element of the page's frame, `reports/heads.html`. */
export function byId<Element extends HTMLElement | SVGElement = HTMLElement>(id: string): Element {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element as Element & HTMLElement;
}

/** A small square of a colour, before what it stands for. */
export function dot(colour: string, style = ""): HTMLElement {
  return make("span", { class: "dot", style: `${style}background:${colour}` });
}

function filled<E extends Element>(element: E, attributes: Attributes, children: Children, listeners: Listeners): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const [name, listener] of Object.entries(listeners)) element.addEventListener(name, listener as EventListener);
  element.append(...children.filter((child) => child !== null));
  return element;
}
