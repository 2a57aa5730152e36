import { defineConfig } from "vite";

// The server sends a Content-Security-Policy without exceptions: nothing may be inlined into the page.
export default defineConfig({
  build: { assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: "es2022" },
  server: { proxy: { "/v1": { target: "http://127.0.0.1:8321", ws: true } } },
});
