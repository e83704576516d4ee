//! The reference of commands and configuration keys, compared with the program.

use crate::support::process::command;
use std::path::Path;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn help(path: &[String]) -> String {
    let output = command().args(path).arg("--help").output().unwrap();
    assert!(output.status.success(), "{path:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the subcommands in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    let names = list
        .lines()
        .take_while(|l| l.starts_with("  "))
        .filter_map(|l| l.split_whitespace().next());
    names.filter(|n| *n != "help").map(str::to_owned).collect()
}

/// Returns all commands with their help texts.
fn all() -> Vec<(Vec<String>, String)> {
    let (mut found, mut left) = (Vec::new(), vec![Vec::new()]);
    while let Some(path) = left.pop() {
        let help = help(&path);
        left.extend(subcommands(&help).into_iter().map(|name| [path.as_slice(), &[name]].concat()));
        found.push((path, help));
    }
    found
}

/// Returns the options and arguments in a help text, except for common options.
fn options(help: &str) -> Vec<&str> {
    let names = help.lines().map(str::trim_start).filter_map(|line| {
        let line = line.strip_prefix("-h, ").or_else(|| line.strip_prefix("-V, ")).unwrap_or(line);
        let long = line.starts_with("--") || line.starts_with('<') && line.contains(">");
        line.split_whitespace().next().filter(|_| long)
    });
    let common = ["--help", "--version", "--config", "--json"];
    names.filter(|n| !common.contains(n)).collect()
}

#[test]
fn every_command_is_in_the_documentation() {
    let text = file("docs/commands.md");
    let all = all();
    assert!(all.len() > 20, "{all:?}");
    for (path, help) in &all {
        let called = [&["heliograph".to_owned()], path.as_slice()].concat().join(" ");
        assert!(help.contains("\nExample:\n  "), "{called} --help has no example");
        if path.is_empty() || !subcommands(help).is_empty() {
            continue;
        }
        let section = text.split("\n## ").find(|s| s.starts_with(&format!("`{called}`\n")));
        let section =
            section.unwrap_or_else(|| panic!("docs/commands.md has no section '## `{called}`'"));
        assert!(
            section.contains(&format!("    {called}")) || section.contains(&format!("$({called}")),
            "no example of {called}"
        );
        for option in options(help) {
            assert!(
                section.contains(&format!("`{option}")),
                "{called}: {option} is not in docs/commands.md"
            );
        }
        let named = section.split('`').filter(|word| word.starts_with("--") && !word.contains(' '));
        for option in named {
            assert!(help.contains(option), "docs/commands.md: {called} has no {option}");
        }
    }
    for heading in text.split("\n## `heliograph ").skip(1) {
        let called = heading.split('`').next().unwrap();
        let there = all.iter().any(|(path, _)| path.join(" ") == called);
        assert!(there, "docs/commands.md: there is no command '{called}'");
    }
}

/// Returns the rows of a table whose first column is the end of a recipient: both columns.
fn recipients(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `0")?.strip_suffix(" |"));
    rows.filter_map(|row| row.split_once("` | ")).collect()
}

#[test]
fn results_by_recipient_are_in_the_help() {
    let (help, readme) = (help(&["smsc".to_owned()]), file("README.md"));
    let text = file("docs/commands.md");
    let listed = recipients(&text);
    for (end, result) in &listed {
        assert!(help.contains(&format!("\n  0{end}  {result}\n")), "smsc --help: 0{end}");
    }
    let ends = |rows: Vec<(&str, &str)>| rows.iter().map(|r| r.0.to_owned()).collect::<Vec<_>>();
    assert_eq!(ends(listed), ends(recipients(&readme)), "docs/commands.md and README.md");
    assert_eq!(help.lines().filter(|line| line.starts_with("  00")).count(), 9, "{help}");
}

#[test]
fn every_key_is_in_the_documentation() {
    let (text, defaults) = (file("docs/configuration.md"), file("config.default.toml"));
    let mut section = "";
    let mut keys = 0;
    for line in defaults.lines().map(|l| l.trim_start_matches("# ")) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_matches(['[', ']']);
            assert!(
                text.contains(&format!("`[{section}]`"))
                    || text.contains(&format!("`[[{section}]]`")),
                "{section}"
            );
        } else if let Some((key, _)) = line.split_once(" = ").filter(|(key, _)| !key.contains(' '))
        {
            let row = format!("| `{section}.{key}` |");
            assert!(text.contains(&row), "docs/configuration.md has no line {row}");
            keys += 1;
        }
    }
    // Other tables have no dot in their first column.
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let rows = rows.filter(|key| key.contains('.')).count();
    assert_eq!(keys, rows, "docs/configuration.md has unknown keys");
}
