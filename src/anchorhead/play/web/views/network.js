/* Open a network: a saved one of ours, what it is made of, and what its heads do with an input. */

import { panel, select } from "../controls.js";
import { element, oncePerFrame } from "../dom.js";
import { AttentionPanel } from "../network/attention_panel.js";
import { errorInWords } from "../network/certificate.js";
import { bytesOf, exampleNetworks } from "../network/examples.js";
import { openNetwork } from "../network/file.js";
import { inputEditor } from "../network/input.js";
import { NetworkError } from "../network/layers.js";
import { run } from "../network/network.js";
import { FileError, MAX_BYTES } from "../network/safetensors.js";
import { Slice } from "../network/slice.js";
import { outputTable } from "../network/tables.js";
import { certificateList, counted, layerList, streamText } from "../network/words.js";

const MAX_IN_LINK = 400;

function mount(root, given, changed) {
  const examples = exampleNetworks();
  const attention = new AttentionPanel(changed);
  const slice = new Slice(changed);
  const slots = Object.fromEntries(
    ["message", "facts", "input", "output", "layers", "certificate"].map((name) => [name, element("div")]),
  );
  let opened = null;
  let editor = null;
  let result = null;

  const file = element("input", {
    type: "file",
    accept: ".safetensors",
    id: "network-file",
    class: "unseen-input",
    "aria-describedby": "network-drop",
  });
  file.addEventListener("change", () => file.files.length && openFile(file.files[0]));
  const picker = select({
    label: "Example",
    options: [
      ...examples.map((one) => ({ value: one.name, label: one.title })),
      { value: "", label: "a file of yours" },
    ],
    value: examples[0].name,
    changed: (name) => {
      if (name) return openExample(name);
      picker.value = opened.example ?? ""; // until a file is there
      return file.click();
    },
  });
  slots.message.setAttribute("role", "alert");

  const side = element(
    "div",
    { class: "side" },
    panel(
      "Open a network",
      "Any file that net.save wrote. It stays on this machine.",
      picker.element,
      element(
        "div",
        { class: "drop", id: "network-drop" },
        element("label", { for: "network-file", class: "button" }, "Choose a .safetensors file"),
        file,
        element("small", { class: "note" }, "or drop it anywhere on this page"),
      ),
      slots.message,
      slots.facts,
    ),
    panel("Input", null, slots.input),
  );
  const pictures = element(
    "div",
    { class: "pictures" },
    panel(
      "Output",
      "What leaves the network for this input, and along one of its numbers.",
      slots.output,
      slice.element,
    ),
    panel(
      "Where attention goes",
      "Each row is one that asks; its weights over the tokens that it sees add up to 1. In short, i, r and s are input, register and state tokens.",
      attention.slots.chosen,
      attention.map.element,
      attention.slots.looks,
    ),
    panel(
      "What each head adds",
      "Every head adds a vector to the token that asks; features that some head writes are listed. The layer's bias and its skip come on top.",
      attention.slots.added,
    ),
    panel("Certificate", "What is known of the error, and how.", slots.certificate),
    element(
      "div",
      { class: "wide" },
      panel("Layers", "Linear maps and softmax attention, nothing else.", slots.layers),
    ),
  );
  root.append(element("div", { class: "workbench" }, side, pictures));

  const dropping = (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    if (event.type === "drop" && event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
  };
  for (const name of ["dragover", "drop"]) document.addEventListener(name, dropping);

  async function openFile(one) {
    if (one.size > MAX_BYTES)
      return refuse(
        `${one.name} has ${Math.round(one.size / 2 ** 20)} MB; the page opens files of up to ${MAX_BYTES / 2 ** 20} MB.`,
      );
    return openBytes(await one.arrayBuffer(), { file: one.name, code: `net = ah.load(${JSON.stringify(one.name)})` });
  }

  function openExample(name, rows, selection, along) {
    const one = examples.find((each) => each.name === name) ?? examples[0];
    openBytes(bytesOf(one), { example: one.name, code: one.code }, rows, selection, along);
  }

  function openBytes(buffer, source, rows = null, selection = null, along = 0) {
    let found = null;
    try {
      found = openNetwork(buffer);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      return refuse(error.message);
    }
    opened = { ...found, ...source };
    picker.value = source.example ?? "";
    attention.choose(selection);
    editor = inputEditor(opened, rows, () => {
      later();
      changed();
    });
    slots.input.replaceChildren(editor.element);
    slice.offer(opened, editor, along);
    slots.layers.replaceChildren(layerList(opened.network));
    slots.certificate.replaceChildren(
      opened.certificate
        ? certificateList(opened.certificate)
        : element("p", {}, "This file holds none: nothing is claimed of its error."),
    );
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
      if (!(error instanceof NetworkError)) throw error;
      result = null;
      slots.output.replaceChildren(element("p", { class: "problem", role: "alert" }, error.message));
    }
    if (wrong !== null) slots.output.replaceChildren(element("p", { class: "problem" }, wrong));
    else if (result !== null) slots.output.replaceChildren(outputTable(opened, result.output, editor.tokens()));
    attention.show(result);
    if (result !== null) slice.update();
  }

  function python() {
    if (editor.problem() !== null) return null;
    const rows = opened.network.tokenAxis ? editor.tokens() : editor.tokens()[0];
    const imports = [/\bnp\./, /\bincontext\./].map((word) => word.test(opened.code));
    return [
      ...(imports[0] ? ["import numpy as np", ""] : []),
      "import anchorhead as ah",
      ...(imports[1] ? ["from anchorhead import incontext"] : []),
      "",
      opened.code,
      `x = ${JSON.stringify(rows)}`,
      "print(net(x))",
      "for weights in net.attention(x):  # (heads, tokens that ask, tokens that are seen)",
      "    print(weights.round(3))",
      "print(net.certificate)",
      "",
    ].join("\n");
  }

  const later = oncePerFrame(update);
  const start = given ?? {};
  openExample(
    typeof start.example === "string" ? start.example : examples[0].name,
    start.rows,
    start.chosen,
    start.along,
  );
  if (typeof start.file === "string") refuse(`This link is about the file ${start.file}: open it again to see it.`);

  return {
    state: () => ({
      ...(opened.example ? { example: opened.example } : { file: opened.file }),
      ...rowsForLink(editor.rows()),
      chosen: attention.chosen,
      along: slice.along,
    }),
    svg: () => (attention.map.element.hidden ? null : attention.map.svg),
    python,
    unmount: () => ["dragover", "drop"].forEach((name) => document.removeEventListener(name, dropping)),
    result: () => result,
    opened: () => opened,
  };
}

/** Inputs of many numbers would make a link too long to share. */
function rowsForLink(rows) {
  return rows.flat().length <= MAX_IN_LINK ? { rows } : {};
}

function factList({ network, dtype, certificate, target }) {
  const last = network.streams.at(-1);
  const facts = [
    ["Computes", certificate?.target ?? (target ? `a target of the kind “${target.kind}”` : "nothing that it names")],
    ["Weights", `${counted(network.parameters, "number")} in ${dtype}`],
    ["Inside", streamText(network.streams[0])],
    ["Puts out", `the ${network.output} tokens: ${counted(last.features.length, "feature")} each`],
    ...(certificate ? [["Certificate", `${certificate.kind}: ${errorInWords(certificate.kind, certificate.bound)}`]] : []),
  ];
  return element(
    "dl",
    { class: "facts" },
    facts.flatMap(([label, text]) => [element("dt", {}, label), element("dd", {}, text)]),
  );
}

export const view = { name: "network", title: "Open a network", mount };
