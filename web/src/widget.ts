/** Headscope in a notebook: what anywidget calls for every place a widget is shown in. */

import { mount, unmount } from "svelte";
import App from "./app/App.svelte";
import { Kernel, kernelSource, type WidgetModel, widgetAddress } from "./hosts/notebook";
import { notebookTheme } from "./hosts/notebookTheme";
import { isAborted, problemOf } from "./source";

/** Longer than a kernel with nothing else to do takes. */
const PATIENCE = 1500;

/** Draws the view into an element of the notebook's; gives back how to end it. */
export function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  // A shadow keeps the styles of the notebook out, and ours in.
  const place = document.createElement("div");
  // The front end's own keys (cut the cell, go to the next) are not meant while ours has the focus.
  place.dataset.lmSuppressShortcuts = "true";
  const stopKeys = (event: Event) => event.stopPropagation();
  for (const kind of ["keydown", "keypress", "keyup"]) place.addEventListener(kind, stopKeys);
  const shadow = place.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(String(model.get("_style")));
  shadow.adoptedStyleSheets = [style];
  const root = document.createElement("div");
  root.dataset.headscope = "notebook";
  root.dataset.ready = "false";
  root.tabIndex = -1; // so that a click anywhere brings the keys here
  shadow.append(root);
  el.append(place);

  const size = () => {
    root.style.height = `${model.get("height")}px`;
  };
  size();
  model.on("change:height", size);

  const kernel = new Kernel(model);
  const source = kernelSource(kernel);
  const theme = notebookTheme();
  const end = new AbortController();
  let app: ReturnType<typeof mount> | null = null;

  const still = setTimeout(() => showStill(root, model, theme.isDark()), PATIENCE);
  source.part("saved", end.signal).then(
    () => {
      clearTimeout(still);
      root.replaceChildren();
      const page = async () => new Blob([await kernel.ask({ page: true })], { type: "text/html" });
      app = mount(App, {
        target: root,
        props: {
          root,
          home: { kind: "notebook", source, theme, page },
          address: widgetAddress(model),
          isAlone: false,
        },
      });
    },
    (thrown) => {
      clearTimeout(still);
      if (isAborted(thrown)) return;
      const { message, hint } = problemOf(thrown);
      root.replaceChildren(note(`${message} ${hint}`));
    },
  );

  return () => {
    clearTimeout(still);
    end.abort();
    model.off("change:height", size);
    if (app) unmount(app);
    kernel.destroy();
    place.remove();
  };
}

/** While no kernel answers, or for ever where there is none: the picture that was made beside the widget. */
function showStill(root: HTMLElement, model: WidgetModel, isDark: boolean) {
  root.dataset.theme = isDark ? "dark" : "light";
  const text =
    "The kernel that holds this view does not answer. It may be busy; if it was restarted, run the cell again.";
  root.replaceChildren(note(text));
  const picture = model.get("_picture");
  const bytes = picture instanceof DataView ? picture : null;
  if (!bytes?.byteLength) return;
  const image = document.createElement("img");
  image.alt = String(model.get("_title"));
  image.style.cssText = "display:block;max-width:100%;max-height:calc(100% - 48px);margin:auto";
  const file = new Blob([new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).slice()], {
    type: "image/png",
  });
  image.src = URL.createObjectURL(file);
  image.onload = () => URL.revokeObjectURL(image.src);
  root.append(image);
}

function note(text: string): HTMLElement {
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  line.style.padding = "14px 16px";
  line.textContent = text;
  return line;
}
