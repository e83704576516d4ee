// Builds crates/dashboard/assets/ui from this folder and the templates. The build is reproducible.

import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dashboard = dirname(here);
const out = join(dashboard, "assets/ui");
const modules = join(here, "node_modules");

/** Packages whose code is embedded; their licences go into licenses.txt. */
const EMBEDDED = ["htmx.org", "htmx-ext-sse", "idiomorph", "uplot", "lucide-static", "tailwindcss", "daisyui", "@fontsource-variable/inter"];
/** The subsets of the font; app.css names the characters of each. */
const FONTS = ["latin", "latin-ext"];

function below(folder, ending) {
  const names = readdirSync(folder, { recursive: true }).map(String).sort();
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name));
}

function styles() {
  const cli = join(modules, "@tailwindcss/cli/dist/index.mjs");
  const file = join(out, "app.css");
  execFileSync(process.execPath, [cli, "-i", join(here, "src/app.css"), "-o", file, "--minify"], {
    cwd: here,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

async function scripts() {
  await build({
    entryPoints: ["theme.js", "app.js", "chart.js"].map((name) => join(here, "src", name)),
    outdir: out,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022"],
    legalComments: "none",
    charset: "utf8",
    logLevel: "warning",
  });
}

function fonts() {
  for (const subset of FONTS) {
    const source = join(modules, `@fontsource-variable/inter/files/inter-${subset}-wght-normal.woff2`);
    copyFileSync(source, join(out, `inter-${subset}.woff2`));
  }
}

/** Builds one SVG sprite of all icons used in templates and handlers, as `icon("name")`, `empty("name"` or `modal("…", "name"`. */
function icons() {
  const sources = [...below(join(dashboard, "templates"), ".html"), ...below(join(dashboard, "src"), ".rs")];
  const text = sources.map((file) => readFileSync(file, "utf8")).join("\n");
  const names = new Set([...text.matchAll(/(?:(?:icon|empty)\("|modal\("[^"]*", "|icons\.svg#)([a-z0-9-]+)/g)].map((found) => found[1]));
  const symbols = [...names].sort().map((name) => {
    const svg = readFileSync(join(modules, "lucide-static/icons", `${name}.svg`), "utf8");
    const inner = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.lastIndexOf("</svg>"));
    return `<symbol id="${name}" viewBox="0 0 24 24">${inner.replace(/\s*\n\s*/g, "").trim()}</symbol>`;
  });
  const sprite = `<svg xmlns="http://www.w3.org/2000/svg">\n${symbols.join("\n")}\n</svg>\n`;
  writeFileSync(join(out, "icons.svg"), sprite);
}

function licences() {
  const texts = EMBEDDED.map((name) => {
    const { version, homepage = "" } = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
    const licence = readFileSync(join(modules, name, "LICENSE"), "utf8").trim();
    return `${name} ${version} ${homepage}\n\n${licence}\n`;
  });
  const opening = "The style sheet, scripts, icons and fonts of the pages contain parts of the following software.\n";
  writeFileSync(join(out, "licenses.txt"), [opening, ...texts].join(`\n${"-".repeat(80)}\n\n`));
}

/** Writes the version of this build, a hash of all files, which makes asset URLs cacheable forever. */
function version() {
  const hash = createHash("sha256");
  for (const file of readdirSync(out).sort()) {
    const bytes = readFileSync(join(out, file));
    hash.update(file).update(bytes);
    console.log(`${String(gzipSync(bytes).length).padStart(7)} bytes compressed  ${file}`);
  }
  writeFileSync(join(out, "version"), hash.digest("hex").slice(0, 12));
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
styles();
await scripts();
icons();
fonts();
licences();
version();
