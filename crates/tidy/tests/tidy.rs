//! Rules of the code base that the compiler does not check. Each failure names its reason.
//!
//! The tables are the rules: a new crate, module or dependency is added to them here. Sizes are
//! only warned about: `cargo test -p heliograph-tidy -- --nocapture` shows them. The
//! sources are read as rustfmt formats them. `scripts/structure` measures import cycles, duplicate
//! type names and headless comments.

use std::path::Path;
use std::{fs, io};

/// A crate | the crates of this workspace that it may depend on | other crates that it must not
/// depend on.
const DEPENDENCIES: &str = "
    domain    |                                                          | tokio axum hyper reqwest getrandom DRIVERS
    store     | domain                                                   | axum hyper reqwest
    carrier   | domain                                                   | axum DRIVERS
    service   | domain store                                             | axum hyper reqwest DRIVERS
    http      |                                                          | reqwest DRIVERS
    api       | domain service http                                      | hyper reqwest DRIVERS
    dashboard | domain service http                                      | hyper reqwest DRIVERS
    engine    | domain service carrier                                   | axum DRIVERS
    server    | domain store carrier service http api dashboard engine   | DRIVERS
    testing   | domain store service                                     | axum hyper
    tidy      |                                                          | tokio";
const DRIVERS: &str = "rusqlite tokio-postgres deadpool-postgres";
const DEPENDENCY: &str =
    "dependencies point down only, or the layers grow into one (ARCHITECTURE.md)";

/// A crate | the modules and folders of its `src` in layers from the bottom up, with `<` between
/// them. A module imports only from lower layers, never from its own. `scripts/structure --layers`
/// prints the layers as they are.
const LAYERS: &str = "
    api | rate_limit response unknown_path < error < account_shares header readiness security_events < media_type metrics_access < idempotency query request < state < auth openapi < body < balance docs health inbound_messages messages optout_lists rate_limit_layer < router
    carrier | link_status stop < carrier < smpp < smsc
    dashboard | after_response assets cookies csrf format live_updates page reasons sign_in_throttle < bubbles layout page_rate < state < client error_page < form page_limit < composer session < anonymous api_keys audit conversations error_response limits live members messages mode operator optouts overview phone security send webhooks < confirm join password_reset sign_in sign_up < routes
    domain | account account_limit delivery_error egress_policy email money password phone recovery retry text time webhook_url < fields id inbound originator rate secret totp < account_ref carrier endpoint_error inbound_message message optout < lease receipt stats submission wording < lease_fence openapi < event < webhook
    engine | http pending_batch worker < bind_status dispatch forward handsets heartbeat mail maintenance webhooks < workers
    http | client drain idle limits static_asset usage_limit < body_budget < body < layers < error_document < documented_errors < connection < tls < certificate < accept_loop
    server | account_lookup certificate_reload config http key_usage log name_resolver output rate_limit_share rates signals system writer_thread < data_dir metrics_access safety serve_args shutdown simulator telemetry welcome < carriers number_owners service_context < commands serve
    service | kernel < audience billing webhooks < identity messaging < group_commit operations
    store | error < db < audience billing idempotency identity messaging operations webhooks
    testing | deterministic engine resolver < database < node";
const LAYER: &str = "a module imports only from lower layers: move what two modules share down";
const UNPLACED: &str = "a new module needs a place in the table of layers";

/// The beginning of a path, and after `!` what the path does not contain | forbidden text | reason.
/// A row without a beginning holds for test modules, too.
const BANNED: &str = "
     | todo!          | incomplete behaviour is refused with an error, never a stub
     | unimplemented! | incomplete behaviour is refused with an error, never a stub
     | #[ignore       | a test that does not run proves nothing: put it behind a feature
    !/tests/ !store/src/db !crates/testing/ | rusqlite    | only the database drivers name a driver
    !/tests/ !store/src/db !crates/testing/ | _postgres:: | only the database drivers name a driver
    crates/domain/src/  | ::now()  | domain is pure: time is passed in as a Clock
    crates/domain/src/  | std::fs  | domain is pure: it reads no file
    crates/domain/src/  | std::net | domain is pure: it opens no socket
    crates/store/src/   | wording:: | the database holds codes: api, dashboard and server have the texts
    crates/engine/src/  | wording:: | events and logs hold codes: api, dashboard and server have the texts
    crates/service/src/ | wording:: | service returns codes: api, dashboard and server have the texts
    crates/service/src/ | spawn(   | service decides; engine and server run the loops
    crates/service/src/ | sleep(   | due work is a row in the store, which the engine finds
    crates/service/src/ | ::net:: | service opens no socket: carrier and engine do";

const NO_NAMES: &str = "util utils helper helpers common misc manager base";
const WIRING: &str = "lib.rs and mod.rs only declare modules and re-export: give the item a file";
const FROM_ROOT: &str = "nothing imports from lib.rs: name the module that has the item";
const SUPER: &str = "paths are absolute (crate::…), so that a line can be moved without a change";
const SQL_HOME: &str = "all SQL is in store, so that the schema can be changed in one place";

/// A source file.
struct Source {
    path: String,
    text: String,
    /// The text without comments; line numbers are the same.
    code: String,
    /// The code without its test module.
    product: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let lines = text.lines().map(|l| l.split("//").next().unwrap_or_default());
        let code = lines.collect::<Vec<_>>().join("\n");
        let product = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().into();
        Self { path: path.into(), text: text.into(), code, product }
    }

    fn wires(&self) -> bool {
        self.path.ends_with("/lib.rs") || self.path.ends_with("/mod.rs")
    }

    /// Describes a fault at an offset into the code.
    fn fault(&self, at: usize, what: &str, why: &str) -> String {
        let line = self.code.get(..at).unwrap_or_default().matches('\n').count() + 1;
        format!("{}:{line}: {}\n    {why}", self.path, what.lines().next().unwrap_or_default())
    }

    /// Returns the names that follow `prefix` in the product code, with their offsets.
    fn behind(&self, prefix: &str) -> impl Iterator<Item = (usize, &str)> {
        self.product.match_indices(prefix).filter_map(|(at, prefix)| {
            let rest = self.product.get(at + prefix.len()..)?;
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            let in_macro = self.product.get(..at)?.ends_with('$');
            rest.get(..end).filter(|_| !in_macro).map(|name| (at, name))
        })
    }
}

/// Returns the fields of a table's rows.
fn rows(table: &str) -> impl Iterator<Item = [&str; 3]> {
    table.lines().filter_map(|row| {
        let mut fields = row.split('|').map(str::trim);
        Some([fields.next()?, fields.next()?, fields.next()?])
    })
}

fn has(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|w| w == word)
}

fn wiring(s: &Source) -> Vec<String> {
    let is_declaration = |statement: &str| {
        let mut rest = statement.trim();
        while rest.starts_with('#') {
            rest = rest.split_once(']').map_or("", |(_, after)| after.trim_start());
        }
        let rest = rest.strip_prefix("pub(crate)").or(rest.strip_prefix("pub")).unwrap_or(rest);
        let (word, rest) = rest.trim().split_once(' ').unwrap_or(("", rest));
        word == "use" || word == "mod" && !rest.contains('{') || rest.is_empty()
    };
    let odd = s.code.split(';').map(str::trim).find(|part| s.wires() && !is_declaration(part));
    odd.map(|odd| s.fault(s.code.find(odd).unwrap_or(0), odd, WIRING)).into_iter().collect()
}

fn paths(s: &Source) -> Vec<String> {
    let from_root = s.behind("crate::").filter(|(_, n)| n.starts_with(char::is_uppercase));
    let mut faults: Vec<_> = from_root.map(|(at, name)| s.fault(at, name, FROM_ROOT)).collect();
    for (at, _) in s.code.match_indices("super::") {
        let in_test = at > s.product.len() || s.path.ends_with("/tests.rs");
        let (before, rest) = s.code.split_at(at);
        if !(in_test && before.ends_with("use ") && rest.starts_with("super::*;")) {
            faults.push(s.fault(at, "super::", SUPER));
        }
    }
    faults
}

/// Returns the row of a crate in the table of layers, from the bottom up.
fn layers_of(name: &str) -> Vec<&'static str> {
    let mut rows = LAYERS.lines().filter_map(|row| row.split_once('|'));
    let row = rows.find(|(crate_name, _)| crate_name.trim() == name);
    row.map(|(_, layers)| layers.split(" < ").collect()).unwrap_or_default()
}

/// Returns the modules in a group of imports: `a` and `b` of `crate::{a::A, b}`.
fn grouped(import: &str) -> Vec<&str> {
    let Some((_, group)) = import.split_once('{') else { return vec![] };
    let mut depth = 0;
    let mut names = vec![];
    for part in group.split_inclusive([',', '{', '}']) {
        let name = part.trim().split([':', ',', '{', '}', ' ']).next().unwrap_or_default();
        if depth == 0 && !name.is_empty() {
            names.push(name);
        }
        match part.chars().last() {
            Some('{') => depth += 1,
            Some('}') if depth == 0 => return names,
            Some('}') => depth -= 1,
            _ => {}
        }
    }
    names
}

fn layering(s: &Source) -> Vec<String> {
    let Some((name, path)) = s.path.strip_prefix("crates/").and_then(|p| p.split_once("/src/"))
    else {
        return vec![];
    };
    let module = path.split(['/', '.']).next().unwrap_or_default();
    if ["lib", "main"].contains(&module) {
        return vec![];
    }
    let layers = layers_of(name);
    let layer = |module: &str| layers.iter().position(|layer| has(layer, module));
    let Some(own) = layer(module) else { return vec![s.fault(0, module, UNPLACED)] };
    let mut faults = vec![];
    for (at, other) in s.behind("crate::").filter(|(_, o)| !o.starts_with(char::is_uppercase)) {
        let rest = s.product.get(at..).unwrap_or_default();
        let names = if other.is_empty() { grouped(rest) } else { vec![other] };
        for other in names {
            if other != module && layer(other).is_none_or(|layer| layer >= own) {
                faults.push(s.fault(at, &format!("{module} imports {other}"), LAYER));
            }
        }
    }
    faults
}

fn words(s: &Source) -> Vec<String> {
    let is_sql = |at: usize| {
        let literal = s.product.get(at + 1..).unwrap_or_default();
        let literal = literal.trim_start_matches(['\\', ' ', '\n']);
        let (verb, rest) = literal.split_once([' ', '\n']).unwrap_or_default();
        has("SELECT INSERT UPDATE DELETE", verb) && !rest.starts_with('/')
    };
    let may_have_sql = ["/tests/", "crates/store/", "crates/testing/"];
    let foreign = !may_have_sql.iter().any(|place| s.path.contains(place));
    let sql = s.product.match_indices('"').filter(|(at, _)| foreign && is_sql(*at));
    let mut faults: Vec<_> = sql.map(|(at, _)| s.fault(at, "SQL", SQL_HOME)).collect();
    let bare = s.code.match_indices("[allow(").filter(|(at, _)| {
        let attribute = s.code.get(*at..).and_then(|rest| rest.split(")]").next());
        !attribute.is_some_and(|a| a.contains("reason = "))
    });
    faults
        .extend(bare.map(|(at, what)| s.fault(at, what, "a lint is switched off with a `reason`")));
    let inline = s.code.match_indices("mod ").map(|(at, _)| at);
    let inline = inline.filter_map(|i| Some((i, s.code.get(i + 4..)?.split([' ', ';']).next()?)));
    let names = s.path.split(['/', '.']).map(|name| (0, name)).chain(inline);
    let empty = names.filter(|(_, name)| name.split('_').any(|word| has(NO_NAMES, word)));
    faults.extend(
        empty.map(|(at, name)| s.fault(at, name, "this name says nothing about the contents")),
    );
    for [place, what, why] in rows(BANNED) {
        let (start, but) = place.split_once('!').unwrap_or((place, " "));
        let here = s.path.starts_with(start) && !but.split(" !").any(|b| s.path.contains(b));
        let code = if start.is_empty() { &s.code } else { &s.product };
        let found = code.match_indices(what).filter(|_| here);
        faults.extend(found.map(|(at, _)| s.fault(at, what, why)));
    }
    faults
}

/// Returns the faults of one file.
fn faults(s: &Source) -> Vec<String> {
    let opening = s.text.lines().map_while(|l| l.strip_prefix("//! ")).last().unwrap_or_default();
    if !opening.ends_with(['.', ':', '?']) {
        return vec![s.fault(
            0,
            "no opening",
            "a file begins with `//!` and a sentence about its contents",
        )];
    }
    let rules = [wiring, paths, layering, words].iter().filter(|_| !s.path.ends_with("/tidy.rs"));
    rules.flat_map(|rule| rule(s)).collect()
}

/// Returns warnings about sizes.
fn sizes(s: &Source) -> Vec<String> {
    let lines: Vec<_> = s.text.lines().collect();
    let mut long = vec![(lines.len() > 400).then(|| format!("{}: over 400 lines", s.path))];
    for (n, line) in (1..).zip(&lines) {
        let wide = line.chars().count() > 100;
        long.push(wide.then(|| format!("{}:{n}: over 100 columns", s.path)));
        let (indent, item) = line.split_at(line.len() - line.trim_start().len());
        let signature = item.split('(').next().filter(|_| item.ends_with(['{', '(']));
        if signature.is_some_and(|signature| has(signature, "fn")) {
            let end = format!("{indent}}}");
            let body = lines.iter().skip(n).take_while(|l| **l != end).count();
            long.push((body > 48).then(|| format!("{}:{n}: over 50 lines: {item}", s.path)));
        }
    }
    long.into_iter().flatten().collect()
}

/// Returns the faults in the dependencies of crate `name`.
fn dependencies(name: &str, manifest: &str) -> Vec<String> {
    let Some([_, own, outside]) = rows(DEPENDENCIES).find(|[n, ..]| *n == name) else {
        return vec![format!(
            "crates/{name}: has no row in the table of dependencies\n    {DEPENDENCY}"
        )];
    };
    let outside = outside.replace("DRIVERS", DRIVERS);
    let mut counts = false;
    let used = manifest.lines().filter_map(|line| {
        if let Some(section) = line.strip_prefix('[') {
            counts = section == "dependencies]" || section.ends_with(".dependencies]");
        }
        line.split(['.', ' ', '=']).next().filter(|_| counts)
    });
    let wrong = used.filter(|d| match d.strip_prefix("heliograph-") {
        Some(ours) => !has(own, ours),
        None => has(&outside, d),
    });
    wrong
        .map(|d| format!("crates/{name}/Cargo.toml: {name} depends on {d}\n    {DEPENDENCY}"))
        .collect()
}

/// Reads all Rust files below `folder`.
fn read(root: &Path, folder: &str, found: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.file_type()?.is_dir() && !has("target node_modules", &name) {
            read(root, &path, found)?;
        } else if name.ends_with(".rs") {
            found.push(Source::new(&path, &fs::read_to_string(root.join(&path))?));
        }
    }
    Ok(())
}

#[test]
#[expect(clippy::print_stderr, reason = "warnings for the person at the terminal")]
fn the_code_follows_the_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut sources, mut all) = (vec![], vec![]);
    ["crates", "bench"].iter().for_each(|folder| read(&root, folder, &mut sources).unwrap());
    assert!(sources.len() > 20, "the sources were not found");
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
        all.extend(dependencies(&path.file_name().unwrap().to_string_lossy(), &manifest));
    }
    all.extend(sources.iter().flat_map(faults));
    sources.iter().flat_map(sizes).for_each(|warning| eprintln!("warning: {warning}"));
    assert!(all.is_empty(), "{} faults\n{}", all.len(), all.join("\n"));
}

/// A path | code, with `⏎` for a line break | part of the expected message, or nothing.
const SAMPLES: &str = r##"
    crates/api/src/query.rs       | let text = "SELECT one";                      | all SQL is in
    crates/api/src/query.rs       | let text = "\⏎    DELETE FROM t";             | all SQL is in
    crates/api/src/query.rs       | let route = "DELETE /v1/a"; // "UPDATE t"     |
    crates/carrier/src/carrier.rs | let text = 1; use rusqlite::Row;              | database drivers
    crates/store/src/db/x.rs      | use rusqlite::Row; use crate::db::bulk::B;    |
    crates/api/src/query.rs       | use crate::messages::Row;                     | query imports messages
    crates/api/src/messages.rs    | use crate::balance::B;                        | messages imports balance
    crates/api/src/messages.rs    | use crate::query::Q; use crate::messages::A;  |
    crates/api/src/novelty.rs     | use crate::query::Q;                          | table of layers
    crates/service/src/kernel/a.rs | tokio::spawn(later);                         | service decides
    crates/api/src/messages.rs    | use crate::{query::{A, C}, body::B};          |
    crates/api/src/messages.rs    | use crate::{query::A, balance::B};            | messages imports balance
    crates/api/src/messages.rs    | use crate::Router;                            | nothing imports
    crates/api/src/messages.rs    | use super::b::B;                              | paths are absolute
    crates/api/src/query.rs       | #[cfg(test)]⏎mod tests {⏎    use super::*;⏎}   |
    crates/api/src/query.rs       | #[cfg(test)]⏎mod tests {⏎    #[ignore]⏎}      | proves nothing
    crates/api/src/query.rs       | #[allow(dead_code)]                           | with a `reason`
    crates/api/tests/common/a.rs  | #[allow(dead_code, reason = "sample")]        | says nothing
    crates/api/src/lib.rs         | #[cfg(test)]⏎mod b;⏎pub use crate::b::{B, C};  |
    crates/api/src/lib.rs         | mod b;⏎fn f() {⏎    g();⏎}                    | only declare"##;

#[test]
fn each_rule_finds_its_fault() {
    for [path, code, expected] in rows(SAMPLES) {
        let text = format!("//! A sample.\n\n{code}\n").replace('⏎', "\n");
        let found = faults(&Source::new(path, &text));
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{path}: {code}\n{found:?}");
        assert!(found.iter().all(|f| f.contains(expected)), "{path}: {code}\n{found:?}");
    }
    for text in ["", "fn f() {}", "//! no end\n", "\n//! Late.\n"] {
        assert_eq!(faults(&Source::new("crates/api/src/query.rs", text)).len(), 1, "{text}");
    }
    let manifest = "[dependencies]\nserde.workspace = true\nheliograph-store.workspace = true\n\
        tokio = { workspace = true }\n[dev-dependencies]\nheliograph-engine.workspace = true\n";
    for (name, count) in [("domain", 2), ("api", 1), ("service", 0), ("attic", 1)] {
        assert_eq!(dependencies(name, manifest).len(), count, "{name}");
    }
    let long = format!("fn f() {{\n{}}}\n// {}\n", "    x();\n".repeat(400), "x".repeat(100));
    assert_eq!(sizes(&Source::new("a.rs", &long)).len(), 3);
}
