// Scripts of all pages. Everything except live updates works without them.

import "htmx.org";
import "htmx-ext-sse/dist/sse.esm.js";
import "./mode_url.js";
import "./morph.js";
import "./copy.js";
import "./forms.js";
import "./restore_form.js";
import "./shortcuts.js";
import "./menus.js";
import "./dialogs.js";
import "./live.js";
import "./request_errors.js";
import "./theme_switch.js";
import "./bubbles.js";
import "./local_time.js";
import "./local_filters.js";
