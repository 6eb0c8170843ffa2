/* Open a network: a saved one of ours, what it is made of, and what its heads do with an input. */

import { AttentionMap, tokenName } from "../network/map.js";
import { shownAbove } from "../network/certificate.js";
import { choice, panel, select, slider } from "../controls.js";
import { element, oncePerFrame } from "../dom.js";
import { run } from "../network/network.js";
import { bytesOf, exampleNetworks } from "../network/examples.js";
import { openNetwork } from "../network/file.js";
import { inputEditor } from "../network/input.js";
import { certificateList, counted, layerList, streamText } from "../network/words.js";
import { python as exactly } from "../numbers.js";
import { FileError, MAX_BYTES } from "../network/safetensors.js";
import { addedTable, largestWeights, outputTable } from "../network/tables.js";

function mount(root, given, changed) {
  const examples = exampleNetworks();
  const map = new AttentionMap();
  const slots = Object.fromEntries(
    ["message", "facts", "input", "output", "chosen", "looks", "added", "layers", "certificate"].map((name) => [name, element("div")]),
  );
  let opened = null;
  let editor = null;
  let result = null;
  let chosen = { place: null, step: 0, head: 0, token: 0, rows: "tokens" };

  const file = element("input", { type: "file", accept: ".safetensors", id: "network-file", class: "unseen-input", "aria-describedby": "network-drop" });
  file.addEventListener("change", () => file.files.length && openFile(file.files[0]));
  const picker = select({
    label: "Example",
    options: [...examples.map((one) => ({ value: one.name, label: one.title })), { value: "", label: "a file of yours" }],
    value: examples[0].name,
    changed: (name) => (name ? openExample(name, null, null) : file.click()),
  });
  slots.message.setAttribute("role", "alert");

  const side = element(
    "div", { class: "side" },
    panel(
      "Open a network", "Any file that net.save wrote. It stays on this machine.", picker.element,
      element("div", { class: "drop", id: "network-drop" }, element("label", { for: "network-file", class: "button" }, "Choose a .safetensors file"), file, element("small", { class: "note" }, "or drop it anywhere on this page")),
      slots.message, slots.facts,
    ),
    panel("Input", null, slots.input),
  );
  const pictures = element(
    "div", { class: "pictures" },
    panel("Output", "What leaves the network for this input.", slots.output),
    panel("Where attention goes", "Each row is one that asks; its weights over the tokens that it sees add up to 1. In short, i, r and s are input, register and state tokens.", slots.chosen, map.element, slots.looks),
    panel("What each head adds", "Every head adds a vector to the token that asks; only features that some head writes are listed.", slots.added),
    panel("Certificate", "What is known of the error, and how.", slots.certificate),
    element("div", { class: "wide" }, panel("Layers", "Linear maps and softmax attention, nothing else.", slots.layers)),
  );
  root.append(element("div", { class: "workbench" }, side, pictures));

  const dropping = (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    if (event.type === "drop" && event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
  };
  for (const name of ["dragover", "drop"]) document.addEventListener(name, dropping);

  async function openFile(one) {
    if (one.size > MAX_BYTES) return refuse(`${one.name} has ${Math.round(one.size / 2 ** 20)} MB; the page opens files of up to ${MAX_BYTES / 2 ** 20} MB.`);
    return openBytes(await one.arrayBuffer(), { file: one.name, code: `net = ah.load(${JSON.stringify(one.name)})` });
  }

  function openExample(name, rows, selection) {
    const one = examples.find((each) => each.name === name) ?? examples[0];
    openBytes(bytesOf(one), { example: one.name, code: one.code }, rows, selection);
  }

  function openBytes(buffer, source, rows = null, selection = null) {
    let found = null;
    try {
      found = openNetwork(buffer);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      return refuse(error.message);
    }
    opened = { ...found, ...source };
    picker.value = source.example ?? "";
    chosen = { place: null, step: 0, head: 0, token: 0, rows: "tokens", ...selection };
    editor = inputEditor(opened, rows, () => {
      later();
      changed();
    });
    slots.input.replaceChildren(editor.element);
    slots.layers.replaceChildren(layerList(opened.network));
    slots.certificate.replaceChildren(opened.certificate ? certificateList(opened.certificate) : element("p", {}, "This file holds none: nothing is claimed of its error."));
    slots.message.replaceChildren();
    slots.facts.replaceChildren(factList(opened));
    update();
    changed();
    return undefined;
  }

  function refuse(message) {
    picker.value = opened?.example ?? "";
    slots.message.replaceChildren(element("p", { class: "problem" }, message));
  }

  function update() {
    const wrong = editor.problem();
    try {
      if (wrong === null) result = run(opened.network, editor.tokens(), { record: true });
    } catch (error) {
      result = null;
      slots.output.replaceChildren(element("p", { class: "problem", role: "alert" }, error.message));
    }
    if (wrong !== null) slots.output.replaceChildren(element("p", { class: "problem" }, wrong));
    else if (result !== null) slots.output.replaceChildren(outputTable(opened, result.output, editor.tokens()));
    showAttention();
  }

  function showAttention() {
    const notes = (result?.attention ?? []).filter((note) => note.asking.length);
    const missing = result !== null && result.attention === null ? "There are more attention weights than the page can show: give fewer tokens." : "No attention layer has anything to show.";
    map.element.hidden = !notes.length;
    if (!notes.length) {
      slots.chosen.replaceChildren(element("p", {}, missing));
      slots.looks.replaceChildren();
      slots.added.replaceChildren(element("p", {}, missing));
      return;
    }
    const places = [...new Set(notes.map((note) => note.place))];
    if (!places.includes(chosen.place)) chosen = { ...chosen, place: places.at(-1), ...(chosen.place === null ? firstRows(notes.at(-1)) : {}) };
    const same = notes.filter((note) => note.place === chosen.place);
    chosen.step = within(chosen.step, same.length);
    const note = same[chosen.step];
    chosen.head = within(chosen.head, note.heads);
    chosen.token = within(chosen.token, note.asking.length);
    slots.chosen.replaceChildren(chooser(places, same, note));
    drawMap(note);
  }

  /** With one token that asks and several heads, heads make the rows. */
  function firstRows(note) {
    return { rows: note.asking.length === 1 && note.heads > 1 ? "heads" : "tokens" };
  }

  function chooser(places, same, note) {
    const put = (change) => {
      const focused = document.activeElement?.dataset?.control;
      chosen = { ...chosen, ...change };
      showAttention();
      if (focused) slots.chosen.querySelector(`[data-control="${focused}"]`)?.focus();
      changed();
    };
    const parts = [];
    const add = (name, made) => {
      made.input.dataset.control = name;
      parts.push(made.element);
    };
    if (places.length > 1) add("layer", select({ label: "Layer", options: places.map((one) => ({ value: one, label: `layer ${one}` })), value: chosen.place, changed: (place) => put({ place, step: 0, head: 0, token: 0 }) }));
    if (note.heads > 1 && note.asking.length > 1) parts.push(choice({ label: "Rows", options: [{ value: "tokens", label: "tokens" }, { value: "heads", label: "heads" }], value: chosen.rows, changed: (rows) => put({ rows }) }).element);
    if (note.heads > 1 && chosen.rows === "tokens") add("head", select({ label: "Head", options: numbered(note.heads, (k) => `${k}: ${note.labels[k]}`), value: String(chosen.head), changed: (head) => put({ head: Number(head) }) }));
    if (note.asking.length > 1) add("token", select({ label: "Token that asks", options: numbered(note.asking.length, (k) => tokenName(note.asking[k])), value: String(chosen.token), changed: (token) => put({ token: Number(token) }) }));
    const controls = element("div", { class: "row-of" }, parts);
    if (same.length === 1) return controls;
    const steps = slider({ label: `Step of the repeat, of ${same.length}`, min: 1, max: same.length, value: chosen.step + 1, changed: (step) => put({ step: step - 1 }) });
    steps.input.dataset.control = "step";
    return element("div", {}, controls, steps.element);
  }

  function drawMap(note) {
    const width = note.seen.length;
    const row = (head, token) => note.weights.subarray((head * note.asking.length + token) * width, (head * note.asking.length + token + 1) * width);
    slots.looks.replaceChildren(largestWeights(note, chosen, row));
    slots.added.replaceChildren(addedTable(note, chosen.token));
    if (note.grid?.length === 2 && (note.heads === 1 || chosen.rows === "tokens")) return drawGrid(note, row(chosen.head, chosen.token));
    const byHead = chosen.rows === "heads" || note.asking.length === 1;
    const columns = note.seen.map((token) => ({ long: tokenName(token), short: tokenName(token, true) }));
    const rows = byHead ? numbered(note.heads, (k) => `head ${k}`).map(({ label }) => ({ long: label })) : note.asking.map((token) => ({ long: tokenName(token) }));
    const weights = new Float64Array(rows.length * width);
    rows.forEach((_, k) => weights.set(byHead ? row(k, chosen.token) : row(chosen.head, k), k * width));
    map.draw(weights, rows, columns, byHead ? "heads" : "tokens that ask", "tokens that are seen");
    return undefined;
  }

  /** Over a grid of two axes the weights of one token make a picture of the grid. */
  function drawGrid(note, weights) {
    const [rows, columns] = note.grid;
    const names = (count) => numbered(count, String).map(({ label }) => ({ long: label, short: label }));
    map.draw(weights.subarray(0, rows * columns), names(rows), names(columns), "anchors along the first axis", "anchors along the second axis");
  }

  function python() {
    const rows = opened.network.tokenAxis ? editor.tokens() : editor.tokens()[0];
    const written = JSON.stringify(rows, (_, value) => value).replace(/-?\d[\d.e+-]*/g, (text) => exactly(Number(text)));
    const imports = [/\bnp\./, /\bincontext\./].map((word) => word.test(opened.code));
    return [
      ...(imports[0] ? ["import numpy as np", ""] : []), "import anchorhead as ah", ...(imports[1] ? ["from anchorhead import incontext"] : []), "",
      opened.code, `x = ${written}`, "print(net(x))", "for weights in net.attention(x):  # (heads, tokens that ask, tokens that are seen)",
      "    print(weights.round(3))", "print(net.certificate)", "",
    ].join("\n");
  }

  const later = oncePerFrame(update);
  const start = given ?? {};
  openExample(typeof start.example === "string" ? start.example : examples[0].name, start.rows, selectionOf(start.chosen));
  if (typeof start.file === "string") refuse(`This link is about the file ${start.file}: open it again to see it.`);

  return {
    state: () => ({ ...(opened.example ? { example: opened.example } : { file: opened.file }), rows: editor.rows(), chosen }),
    svg: () => (map.element.hidden ? null : map.svg),
    python,
    unmount: () => ["dragover", "drop"].forEach((name) => document.removeEventListener(name, dropping)),
    result: () => result,
    opened: () => opened,
  };
}

function selectionOf(given) {
  const count = (n) => (Number.isSafeInteger(n) && n >= 0 ? n : 0);
  const one = given ?? {};
  return { place: typeof one.place === "string" ? one.place : null, step: count(one.step), head: count(one.head), token: count(one.token), rows: one.rows === "heads" ? "heads" : "tokens" };
}

function within(place, count) {
  return Math.min(Math.max(0, place), count - 1);
}

function numbered(count, words) {
  return Array.from({ length: count }, (_, k) => ({ value: String(k), label: words(k) }));
}

function factList({ network, dtype, certificate, target }) {
  const last = network.streams.at(-1);
  const facts = [
    ["Computes", certificate?.target ?? (target ? `a target of the kind “${target.kind}”` : "nothing that it names")],
    ["Weights", `${counted(network.parameters, "number")} in ${dtype}`],
    ["Inside", streamText(network.streams[0])],
    ["Puts out", `the ${network.output} tokens: ${counted(last.features.length, "feature")} each`],
    ...(certificate ? [["Error", `at most ${shownAbove(certificate.bound)}, ${certificate.kind}`]] : []),
  ];
  return element("dl", { class: "facts" }, facts.flatMap(([label, text]) => [element("dt", {}, label), element("dd", {}, text)]));
}

export const view = { name: "network", title: "Open a network", mount };
