// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { expect, it } from "vitest";

const SOURCES = resolve("src");
const IMPORT = /^import (\w+) from "([^"]+\.module\.css)";$/gm;
const CLASS = /\.([a-zA-Z]\w*)/g;

const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).map((name) => join(SOURCES, name));
const modules = files.filter((file) => file.endsWith(".module.css"));

function classesOf(module: string): string[] {
  const text = readFileSync(module, "utf8")
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\{[^{}]*\}/g, "{}")
    .replace(/:global\([^)]*\)/g, "");
  return [...text.matchAll(CLASS)].map((match) => match[1]!);
}

/** Returns the class names that are used of each module; "*" if a name is computed. */
function uses(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>(modules.map((module) => [module, new Set()]));
  for (const file of files.filter((name) => name.endsWith(".tsx"))) {
    const text = readFileSync(file, "utf8");
    for (const [, alias, path] of text.matchAll(IMPORT)) {
      const module = path!.startsWith("@/") ? join(SOURCES, path!.slice(2)) : resolve(dirname(file), path!);
      const names = found.get(module);
      expect(names, `${path} of ${basename(file)} is there`).toBeDefined();
      const code = text.replace(IMPORT, "");
      for (const [, name] of code.matchAll(new RegExp(`\\b${alias}\\.(\\w+)`, "g"))) names!.add(name!);
      if (text.includes(`${alias}[`)) names!.add("*");
    }
  }
  return found;
}

it("every class that a component uses is in its module, and every class is used", () => {
  const wrong: string[] = [];
  for (const [module, names] of uses()) {
    const classes = new Set(classesOf(module));
    for (const name of names) if (name !== "*" && !classes.has(name)) wrong.push(`${basename(module)} has no .${name}`);
    if (!names.has("*"))
      for (const name of classes) if (!names.has(name)) wrong.push(`nobody uses .${name} of ${basename(module)}`);
  }
  expect(wrong).toEqual([]);
  expect(modules.length).toBeGreaterThan(30);
});
