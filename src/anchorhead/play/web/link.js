/* The share link: #view=NAME&s=STATE, STATE being JSON in base64url. */

/** The part of an address after #. */
export function toHash(view, state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `#view=${encodeURIComponent(view)}&s=${text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`;
}

/** { view, state } of an address; null for what is missing or was damaged on the way. */
export function fromHash(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  let state = null;
  try {
    const text = atob((fields.get("s") ?? "").replace(/-/g, "+").replace(/_/g, "/"));
    state = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (sign) => sign.charCodeAt(0))));
  } catch {
    state = null;
  }
  return { view: fields.get("view"), state: state !== null && typeof state === "object" ? state : null };
}
