// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

const SOURCES = resolve("src");
/** A name with its value is a line on a phone too. */
const MAX_CELLS_OF_A_LINE = 2;
/** Pictures that consist of cells. They would be meaningless as cards. */
const PICTURES = new Set(["HeatMap.tsx", "ImportanceBars.tsx"]);

type Element = ts.JsxElement;

const tagOf = (element: Element) => element.openingElement.tagName.getText();

function attribute(element: Element, name: string): string | undefined {
  return element.openingElement.attributes.properties
    .filter(ts.isJsxAttribute)
    .find((each) => each.name.getText() === name)
    ?.getText();
}

function elements(root: ts.Node, tag: string): Element[] {
  const found: Element[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isJsxElement(node) && tagOf(node) === tag) found.push(node);
    node.forEachChild(visit);
  };
  root.forEachChild(visit);
  return found;
}

/** Cells that are rendered in a loop may be any number. */
function isRepeated(cell: Element, row: Element): boolean {
  let node: ts.Node = cell.parent;
  while (node !== row) {
    if (ts.isCallExpression(node)) return true;
    node = node.parent;
  }
  return false;
}

/** A control names its own purpose. */
const isControl = (cell: Element) => /^<td[^>]*>\s*<(input|Button)\b/.test(cell.getText());

function problemsOf(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  for (const table of elements(source, "table")) {
    const rows = elements(table, "tbody").flatMap((body) => elements(body, "tr"));
    for (const row of rows) {
      const cells = elements(row, "td");
      const isLine = cells.length <= MAX_CELLS_OF_A_LINE && !cells.some((cell) => isRepeated(cell, row));
      if (isLine) continue;
      const where = `${basename(file)}:${source.getLineAndCharacterOfPosition(table.getStart()).line + 1}`;
      if (!attribute(table, "className")?.includes("layout.cardTable")) found.push(`${where} is no layout.cardTable`);
      for (const cell of cells)
        if (!attribute(cell, "data-label") && !isControl(cell))
          found.push(`${where} has a cell without data-label: ${cell.getText().slice(0, 60)}`);
    }
  }
  return found;
}

it("the rows of each table with several columns are cards on a phone, and each value has its name", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .map((name) => join(SOURCES, name))
    .filter((name) => name.endsWith(".tsx") && !PICTURES.has(basename(name)));
  const withTables = files.filter((file) => readFileSync(file, "utf8").includes("<table"));
  expect(withTables.flatMap(problemsOf)).toEqual([]);
  expect(withTables.length).toBeGreaterThan(9);
});
