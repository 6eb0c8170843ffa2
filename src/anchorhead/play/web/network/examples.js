/* The small networks that come with the page. */

/** A list of {name, title, code, file}; file is base64. */
export function exampleNetworks() {
  return JSON.parse(document.getElementById("tables").textContent).networks;
}

/** The bytes of an example's file. */
export function bytesOf(example) {
  return Uint8Array.from(atob(example.file), (sign) => sign.charCodeAt(0)).buffer;
}
