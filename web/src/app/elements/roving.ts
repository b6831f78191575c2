/** A toolbar is one tab stop: Left and Right, Home and End go from control to control. Text boxes and sliders need these
 *  keys themselves and stay tab stops of their own. */

const CONTROLS = "button, select, input:is([type=checkbox], [type=radio]), a[href]";

export function roving(bar: HTMLElement) {
  /** The control that had the focus last; before that, the first one is the tab stop. */
  let current: HTMLElement | null = null;
  /** Whoever clicked a control goes on with the keys of the page, such as those from head to head. */
  let isPointed = false;

  const controls = () =>
    [...bar.querySelectorAll<HTMLElement>(CONTROLS)].filter(
      (control) =>
        !control.closest("[popover]") &&
        !(control as HTMLButtonElement).disabled &&
        control.checkVisibility({ visibilityProperty: true }),
    );

  function refresh() {
    const list = controls();
    const stop = current && list.includes(current) ? current : list[0];
    for (const control of list) control.tabIndex = control === stop ? 0 : -1;
  }

  function pressed(event: KeyboardEvent) {
    const list = controls();
    const place = list.indexOf(event.target as HTMLElement);
    if (isPointed || place < 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: list.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    list[(next + list.length) % list.length]?.focus();
  }

  function focused(event: FocusEvent) {
    const target = event.target as HTMLElement;
    if (!controls().includes(target)) return;
    current = target;
    refresh();
  }

  const pointed = () => {
    isPointed = true;
  };
  const left = (event: FocusEvent) => {
    if (!bar.contains(event.relatedTarget as Node | null)) isPointed = false;
  };

  const changes = new MutationObserver(refresh);
  changes.observe(bar, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
  // Where it is narrow, rows of buttons become drop-downs.
  const sizes = new ResizeObserver(refresh);
  sizes.observe(bar);
  bar.addEventListener("keydown", pressed);
  bar.addEventListener("focusin", focused);
  bar.addEventListener("pointerdown", pointed);
  bar.addEventListener("focusout", left);
  refresh();
  return {
    destroy() {
      changes.disconnect();
      sizes.disconnect();
      bar.removeEventListener("keydown", pressed);
      bar.removeEventListener("focusin", focused);
      bar.removeEventListener("pointerdown", pointed);
      bar.removeEventListener("focusout", left);
    },
  };
}
