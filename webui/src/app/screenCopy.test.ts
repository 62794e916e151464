// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SOURCES = resolve("src");

/** Words that must not be displayed, with their replacements. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\btags?\b/i, "label"],
  [/\bbatch(es)?\b/i, "step"],
  [/\bfigures?\b/i, "metric or value"],
  [/\bhparams?\b/i, "hyperparameter"],
  [/\btime lines?\b/i, "timeline"],
  [/\bconfigs?\b(?!\.yaml)/i, "configuration"],
  [/\bdirector(y|ies)\b/i, "folder"],
  [/\bnodes?\b/i, "agent"],
  [/\bGPUs?\b/, "slot"],
  [/\bjobs?\b/i, "experiment"],
  [/\b(log|logged|logs) (in|out)\b|\blog(in|out)\b/i, "sign in, sign out"],
  [/\bsearch the\b/i, "find"],
  [/\bId\b/, "ID"],
  [/\b(labelled|cancelled|cancelling|colours?|behaviours?|favourites?)\b/i, "American spelling"],
  [/\b(STATE_[A-Z_]+|ACTIVE|PAUSED|COMPLETED|CANCELED|ERROR|STOPPING[A-Z_]*)\b/, "the state's word"],
  // style.md 1.3 and 1.7
  [/\b(oneself|leave it|switch (on|off)|is told|for want of|has its turn|stands?|signed in last)\b/i, "idiomatic copy"],
  [/^(OK|Yes|No)$/, "a verb"],
  [/!$/, "a sentence without an exclamation mark"],
];
/** Names that begin with a capital inside a sentence: tabs, keys, places. */
const NAMES = new Set(["Enter", "Europe", "Shift", "Trials"]);
const COPY_ATTRIBUTES = new Set(["aria-label", "label", "note", "placeholder", "title", "trigger", "what", "why"]);

interface Copy {
  where: string;
  text: string;
}

const isString = (node: ts.Node): node is ts.StringLiteralLike => ts.isStringLiteralLike(node);

/** Returns the text of a template, with an ellipsis for each value. */
function templateText(node: ts.TemplateExpression): string {
  return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("");
}

/**
 * Returns the displayed texts: JSX text, strings in braces inside it, and strings under a name of `COPY_ATTRIBUTES`.
 */
function copyOf(file: string): Copy[] {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const found: Copy[] = [];
  const add = (node: ts.Node, text: string) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    const plain = text.replace(/\s+/g, " ").trim();
    if (/[a-z]/i.test(plain)) found.push({ where: `${file.slice(SOURCES.length + 1)}:${line + 1}`, text: plain });
  };
  const visit = (node: ts.Node, isCopy: boolean) => {
    if (ts.isJsxText(node)) add(node, node.text);
    else if (isCopy && isString(node)) add(node, node.text);
    else if (isCopy && ts.isTemplateExpression(node)) add(node, templateText(node));
    node.forEachChild((child) => visit(child, isCopyBelow(node, child, isCopy)));
  };
  visit(source, false);
  return found;
}

function isCopyBelow(node: ts.Node, child: ts.Node, isCopy: boolean): boolean {
  if (ts.isJsxAttribute(node)) return COPY_ATTRIBUTES.has(node.name.getText());
  if (ts.isPropertyAssignment(node)) return child === node.initializer && isCopyName(node.name.getText());
  if (ts.isJsxExpression(node)) return ts.isJsxAttribute(node.parent) ? isCopy : true;
  // Strings that are compared, looked up or passed to a function are not displayed.
  if (ts.isCallExpression(node) || ts.isBinaryExpression(node) || ts.isElementAccessExpression(node))
    return ts.isBinaryExpression(node) && /^(\|\||&&|\?\?|\+)$/.test(node.operatorToken.getText()) ? isCopy : false;
  return isCopy;
}

/** `label` is a column of filters as well. */
const isCopyName = (name: string) =>
  name !== "label" && (COPY_ATTRIBUTES.has(name) || ["said", "text", "word"].includes(name));

const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && !/\.test\.|^testing\/|schema\.d\.ts$/.test(name))
  .map((name) => join(SOURCES, name));
const copy = files.flatMap(copyOf);
const shown = ({ where, text }: Copy) => `${where}: ${text}`;
/** Commands are typed, not read. */
const prose = copy.filter(({ text }) => !/^det[ -]/.test(text));

describe("texts of the screens", () => {
  it("have one word for each thing", () => {
    const wrong = prose.flatMap((each) =>
      WORDS.filter(([word]) => word.test(each.text)).map(([, better]) => `${shown(each)} (better: ${better})`),
    );
    expect(wrong).toEqual([]);
  });

  it("are in sentence case", () => {
    const isTitleCase = ({ text }: Copy) =>
      (text.match(/(?<=[a-z] )[A-Z][a-z]+/g) ?? []).some((word) => !NAMES.has(word));
    expect(prose.filter(isTitleCase).map(shown)).toEqual([]);
  });

  it("were found in the sources", () => {
    const texts = copy.map(({ text }) => text);
    for (const known of ["Skip to the content", "Find events", "Files of checkpoint …", "canceling", "Stop instead"])
      expect(texts).toContain(known);
    expect(texts.length).toBeGreaterThan(500);
  });
});
