/** The path of this page with a slash at its end. The master writes it into <base href>. */
export const basePath: string = new URL(document.baseURI).pathname.replace(/[^/]*$/, "");

/** The path without the slash at its end, as the router requires it. */
export const baseName: string = basePath.replace(/\/$/, "") || "/";

/** Returns an address of the master. `path` starts with a slash. */
export function masterUrl(path: string): string {
  return basePath.replace(/\/$/, "") + path;
}

function meta(name: string): string {
  const value = document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
  return value.startsWith("%") ? "" : value;
}

/** The build of this page; empty in development. */
export const pageBuild: string = meta("detent-build");

/** The newest event when this page was served. The stream continues after it, so no event is missed. */
export const pageEvent: string = meta("detent-event");

/** Nonce that the content security policy requires of styles created at run time. */
export const styleNonce: string = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
