//! `heliograph key`.

use crate::support::server::Server;
use serde_json::json;

#[test]
fn keys_are_created_listed_and_revoked() {
    let server = Server::start();
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    let create = |more: &[&str]| {
        server.run_text(&[&["key", "create", "--account", "ann@example.com"], more].concat())
    };
    // Only the key is on stdout, for scripts.
    for (more, begin) in
        [(&[][..], "hg_test_"), (&["--test"], "hg_test_"), (&["--live"], "hg_live_")]
    {
        let (code, key, stderr) = create(more);
        assert_eq!((code, key.len(), key.starts_with(begin)), (Some(0), 45, true), "{key}");
        assert!(
            stderr.contains("will not be shown again") && !stderr.contains(key.trim()),
            "{stderr}"
        );
    }
    for (name, words) in [
        (" ", "the name must not be empty"),
        (&*"日".repeat(101), "the name must not exceed 100 characters"),
    ] {
        let (code, stdout, stderr) = create(&["--name", name]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{name}");
        assert!(stderr.contains(words), "{stderr}");
    }
    create(&["--name", "readers", "--scope", "read", "--scope", "send"]);
    let all = server.list(&["key", "list", "--account", "ann@example.com"]);
    let modes: Vec<_> = all.iter().map(|k| k["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["test", "test", "live", "test"]);
    let last = &all[3];
    let (id, created) = (last["id"].as_str().unwrap(), &last["createdAt"]);
    assert_eq!(
        *last,
        json!({ "id": id, "name": "readers", "mode": "test", "scopes": ["send", "read"],
                "createdAt": created, "lastUsedAt": null, "revokedAt": null })
    );
    let (code, stdout, stderr) = server.run_text(&["key", "revoke", id]);
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    assert_eq!(stderr, format!("Revoked key {id}\n"));
    let all = server.list(&["key", "list", "--account", "ann@example.com"]);
    assert!(all[3]["revokedAt"].is_string() && all[2]["revokedAt"].is_null());
    let (_, stdout, _) = server.run_text(&["key", "list", "--account", "ann@example.com"]);
    assert_eq!(stdout.lines().filter(|l| l.contains("revoked")).count(), 1, "{stdout}");
    assert!(!stdout.contains("hg_"), "{stdout}");
}
