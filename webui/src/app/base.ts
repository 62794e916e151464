/** The path under which this page is reached, with a slash at its end; the master writes it into <base href>. */
export const basePath: string = new URL(document.baseURI).pathname.replace(/[^/]*$/, "");

/** Without the slash at its end, as the router wants it. */
export const baseName: string = basePath.replace(/\/$/, "") || "/";

/** The address of something of the master's. `path` starts with a slash. */
export function masterUrl(path: string): string {
  return basePath.replace(/\/$/, "") + path;
}

function meta(name: string): string {
  const value = document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
  return value.startsWith("%") ? "" : value;
}

/** Which build of the page this is; empty in development. */
export const pageBuild: string = meta("detent-build");

/** The newest event when this page was handed out: the stream goes on after it, so nothing is missed in between. */
export const pageEvent: string = meta("detent-event");

/** What styles made at run time have to bear under the page's content security policy. */
export const styleNonce: string = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
