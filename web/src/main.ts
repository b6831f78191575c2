/** Headscope in a page: finds the elements made for it, and lives in them. Nothing is remembered outside of those.
 *  A notebook calls `render` instead, and has no such elements. */

import { mount } from "svelte";
import App from "./app/App.svelte";
import type { Home } from "./app/slices";
import { noAddress, ownAddress } from "./hosts/address";
import { fileSource } from "./hosts/file";
import { render } from "./widget";

function homeOf(root: HTMLElement): Home {
  if (root.dataset.headscope === "file") {
    return { kind: "file", root, source: fileSource(root), opensAt: root.dataset.opensAt ?? "" };
  }
  return { kind: "page" };
}

function start() {
  const roots = [...document.querySelectorAll<HTMLElement>("[data-headscope]:not([data-ready])")];
  for (const root of roots) {
    const isAlone = roots.length === 1;
    const home = homeOf(root);
    root.dataset.ready = "false";
    mount(App, { target: root, props: { root, home, address: isAlone ? ownAddress() : noAddress(), isAlone } });
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start, { once: true });
else start();

export default { render };
