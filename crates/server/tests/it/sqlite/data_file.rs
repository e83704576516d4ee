//! A data file that is not a database.

use crate::support::engine::Engine;
use crate::support::server::Server;

#[test]
fn a_file_that_is_not_a_database_is_not_changed() {
    let mut server = Server::on(Engine::Sqlite, "");
    let file = server.home.path().join("data/heliograph.db");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let text = "My memoirs. ".repeat(1_000);
    std::fs::write(&file, &text).unwrap();
    let stderr = server.fails_to_start(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(stderr.contains("not a database"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}
