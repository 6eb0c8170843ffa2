/* The shell: tabs, theme, share link, exports. It knows nothing of what its views show.

   A view is a module web/views/NAME.js with

       `export const view = { name, title, mount };`        mount(root, state, changed)

   name     a word for links: #view=NAME; title: what its tab says.
   mount    fills `root`, an empty element. `state` is what state() returned when a link was made, or null; it comes from
            an address and may be anything. Views call changed() whenever their state changed: the address follows a
            little later. Returns
       state()    a small object of what can be written as JSON: all that the view needs to show the same again;
       svg()      the SVG element to save as a picture, or null;
       python()   a text of Python that makes the same, or null;
       unmount()  ends timers and listeners outside of root; root is emptied by the shell.

   A new view is an import and a word in VIEWS. When colours change, `document` gets the event "themechange".

   window.anchorhead holds the mathematics for tests and for the curious: see the end of this file. */

import { announce, element, notify } from "./dom.js";
import { parse } from "./expression.js";
import { erf, erfc } from "./special.js";
import { fromHash, toHash } from "./link.js";
import { run } from "./network/network.js";
import { openNetwork } from "./network/file.js";
import { bfloat16, evaluate, largestError, rounded, uniformHead } from "./softmax.js";
import { copyText, saveText, svgText } from "./save.js";
import { severalHeads, singleHead } from "./theorems/ramp.js";
import { FUNCTIONS, gridHead } from "./theorems/two_layers.js";
import { solve, solveValues } from "./solver.js";
import { allProven, provenHead } from "./tables.js";
import { view as head } from "./views/head.js";
import { view as incontext } from "./views/incontext.js";
import { view as network } from "./views/network.js";
import { view as theorems } from "./views/theorems.js";

const VIEWS = [head, theorems, network, incontext];

const PATIENCE = 250; // milliseconds of quiet before the address follows
const root = document.getElementById("view");
let current = null;
let timer = 0;

function show(view, state) {
  current?.mounted.unmount();
  root.replaceChildren();
  current = { view, mounted: view.mount(root, state, changed) };
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.dataset.view === view.name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) root.setAttribute("aria-labelledby", tab.id);
  }
  document.title = `${view.title} · Anchorhead playground`;
}

function changed() {
  clearTimeout(timer);
  timer = setTimeout(writeAddress, PATIENCE);
}

function writeAddress() {
  clearTimeout(timer);
  history.replaceState(null, "", toHash(current.view.name, current.mounted.state()));
}

function readAddress() {
  const { view, state } = fromHash(location.hash);
  const known = VIEWS.find((one) => one.name === view);
  show(known ?? VIEWS[0], known ? state : null);
}

function makeTabs() {
  const list = document.getElementById("tabs");
  for (const view of VIEWS) {
    const open = () => {
      show(view, null);
      writeAddress();
    };
    list.append(element("button", { type: "button", role: "tab", id: `tab-${view.name}`, "data-view": view.name, "aria-controls": "view", onclick: open }, view.title));
  }
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.children];
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = tabs[to % tabs.length];
    next.click();
    next.focus();
  });
}

function makeTools() {
  const tools = document.getElementById("tools");
  const tool = (label, pressed) => tools.append(element("button", { type: "button", onclick: pressed }, label));
  tool("Copy link", async () => {
    writeAddress();
    const copied = (await copyText(location.href)) ? "The link is in the clipboard." : "The link is in the address bar.";
    notify(location.protocol === "file:" ? `${copied} It opens this file: to share it, put the file on a web page.` : copied);
  });
  tool("Save SVG", () => {
    const drawing = current.mounted.svg();
    if (drawing) saveText(`anchorhead-${current.view.name}.svg`, svgText(drawing), "image/svg+xml");
    notify(drawing ? "The picture was saved." : "This view has no picture to save.");
  });
  tool("Copy Python", async () => {
    const code = current.mounted.python();
    if (code) notify((await copyText(code)) ? "The Python code is in the clipboard." : "The browser did not allow copying.");
    else notify("This view has no Python code.");
  });
  tools.append(makeTheme());
}

function makeTheme() {
  const themes = ["auto", "light", "dark"];
  const put = (theme) => {
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new Event("themechange"));
  };
  let chosen = "auto";
  try {
    chosen = themes.includes(localStorage.getItem("anchorhead-theme")) ? localStorage.getItem("anchorhead-theme") : "auto";
  } catch {
    chosen = "auto"; // pages from files may not store anything
  }
  put(chosen);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
  const choose = element("select", { "aria-label": "Theme", id: "theme" }, themes.map((one) => element("option", { value: one }, one === "auto" ? "Theme: auto" : `Theme: ${one}`)));
  choose.value = chosen;
  choose.addEventListener("change", () => {
    put(choose.value);
    try {
      localStorage.setItem("anchorhead-theme", choose.value);
    } catch {
      announce("The theme holds until the page is closed.");
    }
  });
  return choose;
}

/* current() is what the view in sight returned from mount; the others are what the modules above say of them. A view with
   mathematics of its own adds it here. */
window.anchorhead = {
  current: () => current.mounted,
  parse, erf, erfc,
  bfloat16, evaluate, largestError, rounded, uniformHead,
  solve, solveValues,
  allProven, provenHead,
  openNetwork, run,
  singleHead, severalHeads, gridHead, FUNCTIONS,
  svgText, toHash, fromHash,
};

makeTabs();
makeTools();
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the state
  root.focus();
});
window.addEventListener("hashchange", readAddress);
readAddress();
