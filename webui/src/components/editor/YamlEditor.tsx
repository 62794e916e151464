import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, linter, lintGutter } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { styleNonce } from "@/browser/base";
import styles from "./YamlEditor.module.css";

export interface Remark {
  severity: "error" | "warning";
  message: string;
  /** Line number, from 1. */
  line: number;
  column: number;
}

interface Props {
  label: string;
  value: string;
  onChange?: (value: string) => void;
  /** Checks the text while it is typed. Its results are underlined. */
  check?: (value: string) => Promise<Remark[]>;
  readOnly?: boolean;
}

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--waiting)" },
  { tag: tags.comment, color: "var(--ink-soft)", fontStyle: "italic" },
]);

function look(label: string): Extension {
  return [
    EditorView.cspNonce.of(styleNonce),
    EditorView.contentAttributes.of({ "aria-label": label }),
    EditorView.lineWrapping,
    syntaxHighlighting(colours),
    lineNumbers(),
    yaml(),
    indentUnit.of("  "),
  ];
}

/** An editor of YAML. Tab leaves it, for keyboard accessibility; Mod+] indents. */
export function YamlEditor({ label, value, onChange, check, readOnly = false }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const newest = useRef({ onChange, check });
  useEffect(() => {
    newest.current = { onChange, check };
  });
  const first = useRef(value);
  useEffect(() => {
    const editor = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          look(label),
          history(),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorState.readOnly.of(readOnly),
          lintGutter(),
          linter(async ({ state }) => remarks(state, await (newest.current.check?.(state.doc.toString()) ?? [])), {
            delay: 350,
          }),
          EditorView.updateListener.of(
            (update) => update.docChanged && newest.current.onChange?.(update.state.doc.toString()),
          ),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [label, readOnly]);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== value)
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  return <div ref={place} className={styles.editor} />;
}

function remarks(state: EditorState, found: readonly Remark[]): Diagnostic[] {
  return found.map((remark) => {
    const line = state.doc.line(Math.min(Math.max(1, remark.line), state.doc.lines));
    const from = Math.min(line.to, line.from + Math.max(0, remark.column - 1));
    return { from, to: Math.max(from, line.to), severity: remark.severity, message: remark.message };
  });
}
