//! Tidy: the rules of the house that no compiler checks, each failure with its reason.
//!
//! The tables below are the rules: whoever adds a crate, a floor or a noun edits them there. Sizes
//! are only warned about: `cargo test -p heliograph-server --test tidy -- --nocapture` shows them.
//! Text is read as rustfmt leaves it; this one file may spell what it forbids.

use std::path::Path;
use std::{fs, io};

/// A crate | the crates of the house that it may use | outside crates that it must not use.
const ARROWS: &str = "
    domain  |                                         | tokio axum hyper reqwest getrandom DRIVERS
    store   | domain                                  | axum hyper reqwest
    carrier | domain                                  | axum DRIVERS
    service | domain store                            | axum hyper reqwest DRIVERS
    web     | domain service                          | reqwest DRIVERS
    engine  | domain service carrier                  | axum DRIVERS
    server  | domain store carrier service web engine | DRIVERS";
const DRIVERS: &str = "rusqlite tokio-postgres deadpool-postgres refinery";
const ARROW: &str = "arrows point down only, or the floors grow into one (ARCHITECTURE.md)";
/// A folder of siblings | its path in `use` | its floors from the ground up, with `<` between them.
/// A file imports only from floors below its own, and within a floor that is marked `*`, whose
/// files are one thing. A file that is not listed is a noun, on the top floor; `routes.rs` stands over all.
const FLOORS: &str = "
    service/src/ | crate:: | error bells<context desk passwords<audit mails<caller parcel replies<writer once sessions<price optouts links events<progress<dispatch deliveries cancel<accept<transaction<accounts<one_time_links second_factor<people stats
    store/src/   | crate:: | error<* value row bulk migrations sealing installation db db_sqlite db_postgres db_copy
    web/src/api/ | crate::api:: |
    web/src/dashboard/ | crate::dashboard:: | * assets figure peer csrf page form shell refusal visit outside moment bubbles draft";
const SIBLING: &str = "siblings never import each other: what two share moves one floor down";

/// Where a path begins, and after `!` what it does not contain | what is forbidden there | why.
/// A row without a beginning holds for test modules too.
const BANNED: &str = "
     | todo!          | no part of the road is a stub: what is missing is refused by name
     | unimplemented! | no part of the road is a stub: what is missing is refused by name
     | #[ignore       | a test that does not run proves nothing: put it behind a feature
    !/tests/ !store/src/db !store/src/migrations | rusqlite    | only the db files name a driver
    !/tests/ !store/src/db !store/src/migrations | _postgres:: | only the db files name a driver
    !/tests/ !store/src/db !store/src/migrations | refinery    | only the db files name a driver
    crates/domain/src/  | ::now()  | domain is pure: time is handed in as a Clock
    crates/domain/src/  | std::fs  | domain is pure: it touches no file
    crates/domain/src/  | std::net | domain is pure: it touches no socket
    crates/service/src/ | spawn(   | service decides; engine and server keep things going
    crates/service/src/ | sleep(   | what is due later is a row in the store, and engine finds it
    crates/service/src/ | ::net::  | service opens no socket: carrier and engine do";

const NO_NAMES: &str = "util utils helper helpers common misc manager base";
const WIRING: &str = "lib.rs and mod.rs only declare and wire: give the item a file of its own";
const FROM_ROOT: &str = "nothing imports from lib.rs: name the file that has it";
const SUPER: &str = "paths are crate::…, so that a line means the same wherever it is moved";
const SQL_HOME: &str = "all SQL is in store, or the schema cannot be changed in one place";

/// One file.
struct Source {
    path: String,
    text: String,
    /// The text without comments, line by line the same.
    code: String,
    /// The code up to its test module.
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

    /// A fault at an offset into the code, as a person reads it.
    fn fault(&self, at: usize, what: &str, why: &str) -> String {
        let line = self.code.get(..at).unwrap_or_default().matches('\n').count() + 1;
        format!("{}:{line}: {}\n    {why}", self.path, what.lines().next().unwrap_or_default())
    }

    /// The names that the product code has behind `prefix`, with their offsets.
    fn behind(&self, prefix: &str) -> impl Iterator<Item = (usize, &str)> {
        self.product.match_indices(prefix).filter_map(|(at, prefix)| {
            let rest = self.product.get(at + prefix.len()..)?;
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            let in_macro = self.product.get(..at)?.ends_with('$');
            rest.get(..end).filter(|_| !in_macro).map(|name| (at, name))
        })
    }
}

/// The fields of a table's rows.
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

fn siblings(s: &Source) -> Vec<String> {
    let mut faults = vec![];
    let over_all = s.wires() || s.path.ends_with("/routes.rs");
    for [folder, prefix, floors] in rows(FLOORS).filter(|_| !over_all) {
        let inside = s.path.strip_prefix("crates/").and_then(|path| path.strip_prefix(folder));
        let Some(name) = inside.and_then(|path| path.split(['/', '.']).next()) else { continue };
        let floors: Vec<_> = floors.split('<').collect();
        let floor = |name| floors.iter().position(|f| has(f, name)).unwrap_or(floors.len());
        let peers_may = floors.get(floor(name)).is_some_and(|f| has(f, "*"));
        let may = |other| floor(other) < floor(name) || floor(other) == floor(name) && peers_may;
        for (at, other) in s.behind(prefix).filter(|(_, o)| !o.starts_with(char::is_uppercase)) {
            if other.is_empty() {
                faults.push(s.fault(at, "a group", "siblings get one `use` line each"));
            } else if other != name && !may(other) {
                faults.push(s.fault(at, &format!("{name} imports {other}"), SIBLING));
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
    let foreign = !s.path.contains("/tests/") && !s.path.starts_with("crates/store/");
    let sql = s.product.match_indices('"').filter(|(at, _)| foreign && is_sql(*at));
    let mut faults: Vec<_> = sql.map(|(at, _)| s.fault(at, "SQL", SQL_HOME)).collect();
    let bare = s.code.match_indices("[allow(").filter(|(at, _)| {
        let attribute = s.code.get(*at..).and_then(|rest| rest.split(")]").next());
        !attribute.is_some_and(|a| a.contains("reason = "))
    });
    faults.extend(bare.map(|(at, what)| s.fault(at, what, "a lint goes off with a `reason`")));
    let inline = s.code.match_indices("mod ").map(|(at, _)| at);
    let inline = inline.filter_map(|i| Some((i, s.code.get(i + 4..)?.split([' ', ';']).next()?)));
    let names = s.path.split(['/', '.']).map(|name| (0, name)).chain(inline);
    let empty = names.filter(|(_, name)| name.split('_').any(|word| has(NO_NAMES, word)));
    faults.extend(empty.map(|(at, name)| s.fault(at, name, "what names no thing holds anything")));
    for [place, what, why] in rows(BANNED) {
        let (start, but) = place.split_once('!').unwrap_or((place, " "));
        let here = s.path.starts_with(start) && !but.split(" !").any(|b| s.path.contains(b));
        let code = if start.is_empty() { &s.code } else { &s.product };
        let found = code.match_indices(what).filter(|_| here);
        faults.extend(found.map(|(at, _)| s.fault(at, what, why)));
    }
    faults
}

/// What is wrong with one file.
fn faults(s: &Source) -> Vec<String> {
    let opening = s.text.lines().map_while(|l| l.strip_prefix("//! ")).last().unwrap_or_default();
    if !opening.ends_with(['.', ':', '?']) {
        return vec![s.fault(0, "no opening", "a file opens with `//!` and one plain sentence")];
    }
    let rules = [wiring, paths, siblings, words].iter().filter(|_| !s.path.ends_with("/tidy.rs"));
    rules.flat_map(|rule| rule(s)).collect()
}

/// What is too long, as guidance.
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

/// What is wrong with the dependencies of crate `name`.
fn arrows(name: &str, manifest: &str) -> Vec<String> {
    let Some([_, house, outside]) = rows(ARROWS).find(|[n, ..]| *n == name) else {
        return vec![format!("crates/{name}: has no row in the table of arrows\n    {ARROW}")];
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
        Some(ours) => !has(house, ours),
        None => has(&outside, d),
    });
    wrong.map(|d| format!("crates/{name}/Cargo.toml: {name} depends on {d}\n    {ARROW}")).collect()
}

/// All Rust files below `folder`.
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
#[expect(clippy::print_stderr, reason = "guidance for the person at the terminal")]
fn the_house_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut sources, mut all) = (vec![], vec![]);
    ["crates", "bench"].iter().for_each(|folder| read(&root, folder, &mut sources).unwrap());
    assert!(sources.len() > 20, "the sources were not found");
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
        all.extend(arrows(&path.file_name().unwrap().to_string_lossy(), &manifest));
    }
    all.extend(sources.iter().flat_map(faults));
    sources.iter().flat_map(sizes).for_each(|warning| eprintln!("warning: {warning}"));
    assert!(all.is_empty(), "{} faults\n{}", all.len(), all.join("\n"));
}

/// A path | code, where `⏎` is a line break | a part of the complaint, or nothing.
const SAMPLES: &str = r##"
    crates/web/src/a.rs         | let text = "SELECT one";                      | all SQL is in
    crates/web/src/a.rs         | let text = "\⏎    DELETE FROM t";             | all SQL is in
    crates/web/src/a.rs         | let route = "DELETE /v1/a"; // "UPDATE t"     |
    crates/store/src/a.rs       | let text = "INSERT INTO t"; use rusqlite::Row; | db files
    crates/store/src/db_x.rs    | use rusqlite::Row; use crate::bulk::B;        |
    crates/store/src/queue.rs   | use crate::messages::Row;                     | imports messages
    crates/service/src/price.rs | use crate::links::L;                          | price imports links
    crates/service/src/links.rs | use crate::writer::W; use crate::links::A;    |
    crates/service/src/links.rs | tokio::spawn(later);                          | service decides
    crates/web/src/api/a.rs     | use crate::api::b::B;                         | a imports b
    crates/store/src/a.rs       | use crate::{bulk::A, db::B};                  | one `use` line
    crates/web/src/a.rs         | use crate::Router;                            | nothing imports
    crates/web/src/a.rs         | use super::b::B;                              | paths are crate::…
    crates/web/src/a.rs         | #[cfg(test)]⏎mod tests {⏎    use super::*;⏎}   |
    crates/web/src/a.rs         | #[cfg(test)]⏎mod tests {⏎    #[ignore]⏎}      | proves nothing
    crates/web/src/a.rs         | #[allow(dead_code)]                           | with a `reason`
    crates/web/src/common/a.rs  | #[allow(dead_code, reason = "sample")]        | names no thing
    crates/store/src/lib.rs     | #[cfg(test)]⏎mod b;⏎pub use crate::b::{B, C};  |
    crates/web/src/lib.rs       | mod b;⏎fn f() {⏎    g();⏎}                    | only declare"##;

#[test]
fn each_rule_finds_what_it_is_for() {
    for [path, code, complaint] in rows(SAMPLES) {
        let text = format!("//! A sample.\n\n{code}\n").replace('⏎', "\n");
        let found = faults(&Source::new(path, &text));
        assert_eq!(found.len(), usize::from(!complaint.is_empty()), "{path}: {code}\n{found:?}");
        assert!(found.iter().all(|f| f.contains(complaint)), "{path}: {code}\n{found:?}");
    }
    for text in ["", "fn f() {}", "//! no end\n", "\n//! Late.\n"] {
        assert_eq!(faults(&Source::new("crates/web/src/a.rs", text)).len(), 1, "{text}");
    }
    let manifest = "[dependencies]\nserde.workspace = true\nheliograph-store.workspace = true\n\
        tokio = { workspace = true }\n[dev-dependencies]\nheliograph-engine.workspace = true\n";
    for (name, count) in [("domain", 2), ("web", 1), ("service", 0), ("attic", 1)] {
        assert_eq!(arrows(name, manifest).len(), count, "{name}");
    }
    let long = format!("fn f() {{\n{}}}\n// {}\n", "    x();\n".repeat(400), "x".repeat(100));
    assert_eq!(sizes(&Source::new("a.rs", &long)).len(), 3);
}
