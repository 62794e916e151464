import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config({ ignores: ["dist", "src/api/schema.d.ts"] }, ...tseslint.configs.strict, {
  files: ["src/**/*.{ts,tsx}"],
  plugins: { "react-hooks": hooks },
  languageOptions: { parserOptions: { ecmaFeatures: { jsx: true } } },
  rules: {
    "react-hooks/rules-of-hooks": "error",
    "react-hooks/exhaustive-deps": "error",
    "@typescript-eslint/no-explicit-any": "error",
    "@typescript-eslint/no-non-null-assertion": "off",
    "@typescript-eslint/no-dynamic-delete": "off",
    "max-lines": ["error", { max: 400, skipComments: true }],
    // What people typed elsewhere is text, never markup.
    "no-restricted-syntax": [
      "error",
      {
        selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
        message: "Text from the cluster is never markup.",
      },
      {
        selector: "TSAsExpression > TSNeverKeyword",
        message: "Describe the request in the master's OpenAPI document instead.",
      },
      {
        selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]",
        message: "Text from the cluster is never markup.",
      },
    ],
    "no-restricted-imports": [
      "error",
      { patterns: [{ group: ["**/utils*", "**/helpers*", "**/common*"], message: "Name it after what it is." }] },
    ],
  },
});
