import { styleNonce } from "@/browser/base";

/**
 * Makes what a terminal creates follow the content security policy of the page. It creates styles, which get the nonce
 * of the page, and writes colours of texts into attributes, which are set as properties. The document is changed for
 * that, because xterm 6 uses it for some of both, even if it is given another.
 */
export function followStylePolicy(): void {
  document.createElement = create;
}

function create(tag: string, options?: ElementCreationOptions): HTMLElement {
  const element = Document.prototype.createElement.call(document, tag, options);
  if (element instanceof HTMLStyleElement) element.nonce = styleNonce;
  else if (element instanceof HTMLSpanElement) element.setAttribute = setAttribute;
  return element;
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}
