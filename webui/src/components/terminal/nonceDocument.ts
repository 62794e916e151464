import { styleNonce } from "@/browser/base";

/**
 * Returns the document as a terminal sees it. The terminal creates styles, and writes colours of texts as attributes,
 * neither of which the content security policy of the page allows: the styles get its nonce, and the attributes are set
 * as properties.
 */
export function nonceDocument(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement") return create;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** Opens a terminal. The style of its scroll bar is created by the page's document, whichever document it is given. */
export function openWithNonce(open: () => void): void {
  document.createElement = create;
  try {
    open();
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
}

function create(tag: string): HTMLElement {
  const element = Document.prototype.createElement.call(document, tag);
  if (element instanceof HTMLStyleElement) element.nonce = styleNonce;
  else if (element instanceof HTMLSpanElement) element.setAttribute = setAttribute;
  return element;
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}
