/* A drawing as a file of its own: what the style sheet says is written into every element. */

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "stroke-opacity",
  "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "display", "visibility",
  "image-rendering", "paint-order",
];

/** The text of an SVG file that looks like the drawing in the page, on the page's background. */
export function svgText(drawing) {
  const copy = drawing.cloneNode(true);
  const box = drawing.viewBox.baseVal;
  const width = box && box.width ? box.width : drawing.clientWidth;
  const height = box && box.height ? box.height : drawing.clientHeight;
  inline(drawing, copy);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.removeAttribute("class");
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", width);
  paper.setAttribute("height", height);
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
  title.textContent = copy.getAttribute("aria-label") ?? "";
  copy.prepend(title, paper);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

function inline(from, to) {
  const style = getComputedStyle(from);
  for (const name of STYLES) to.style.setProperty(name, style.getPropertyValue(name));
  to.removeAttribute("tabindex");
  for (let k = 0; k < from.children.length; k += 1) inline(from.children[k], to.children[k]);
}

/** Lets the browser save a text as a file. */
export function saveText(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Puts a text into the clipboard; false where the browser does not allow it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
