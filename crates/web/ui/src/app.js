// What the pages do in the browser. Everything but live parts works without it.

import "htmx.org";
import "htmx-ext-sse/dist/sse.esm.js";
import "./morph.js";
import "./copy.js";
import "./forms.js";
import "./kept.js";
import "./keys.js";
import "./menus.js";
import "./themes.js";
import "./bubbles.js";
import "./times.js";
