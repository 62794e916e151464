import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const master = process.env.DETENT_MASTER ?? "http://127.0.0.1:8080";

/** Compressed once here, so that the master never compresses a byte of the page. */
function precompressed(): Plugin {
  return {
    name: "precompressed",
    apply: "build",
    closeBundle() {
      for (const name of readdirSync("dist/assets")) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const path = join("dist/assets", name);
        const bytes = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), precompressed()],
  // Relative: the master writes the prefix it is reached under into <base href>.
  base: "./",
  html: { cspNonce: "%NONCE%" },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: "frame",
              // What every page needs, in one file of code and one of styles: a request for each small module costs
              // more than its bytes.
              test: /node_modules\/(react|react-dom|scheduler|react-router|clsx|@tanstack\/(react-query|query-core))\/|src\/styles\/|src\/components\/base\/(lazy|Button|Icon|Loading|Failure|EmptyState|CopyText|Toasts)\.|src\/browser\/preferences\.|src\/api\/client\.|src\/format\/(dateTime|escapeControl|nested|number)\.|src\/components\/board\/(boardState|direction|firstQuestion|panels|profile)\.|src\/components\/charts\/palette\.|src\/services\/(series|seriesTogether|trials)\.|src\/live\/serverClock\.|vite\/preload-helper/,
            },
            // Curves, for the same reason: no page needs one of these without the others.
            { name: "curves", test: /node_modules\/uplot\/|src\/components\/(board|charts)\// },
          ],
        },
      },
    },
  },
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  server: { proxy: { "/api": master, "/detent": { target: master, changeOrigin: false, ws: true } } },
  // One document for all files: making one anew for each takes longer than all tests together. Each test cleans up.
  test: {
    environment: "jsdom",
    isolate: false,
    setupFiles: ["src/testing/setup.ts"],
    restoreMocks: true,
    unstubGlobals: true,
    testTimeout: 20_000,
    // Styles are left out but for the one module whose names a test asks for.
    css: { include: [/LogText\.module\.css/], modules: { classNameStrategy: "non-scoped" } },
  },
});
