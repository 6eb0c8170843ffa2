/* Elements in one line each. */

const SVG = "http://www.w3.org/2000/svg";

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) made.append(child);
  }
  return made;
}

/** An HTML element: element("p", { class: "note", onclick: f }, "text", other). */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

let last = 0;

/** A new id, for labels and descriptions. */
export function newId(word) {
  last += 1;
  return `${word}-${last}`;
}

/** Says something to people who listen to the page. */
export function announce(text) {
  document.getElementById("announcements").textContent = text;
}

const READ = 3000; // milliseconds
let hiding = 0;

/** Says something to everybody: what a button did. */
export function notify(text) {
  announce(text);
  const region = document.getElementById("announcements");
  region.className = "toast";
  clearTimeout(hiding);
  hiding = setTimeout(() => (region.className = "unseen"), READ);
}

/** Calls f once in the next frame, however often it is asked for before. */
export function oncePerFrame(f) {
  let asked = 0;
  return () => {
    if (!asked) {
      asked = requestAnimationFrame(() => {
        asked = 0;
        f();
      });
    }
  };
}
