//! Servers with routes and prices, and the balance of an account.

use crate::support::server::Server;

/// Starts a server with a simulated carrier for British and Singaporean numbers, and with prices.
pub(crate) fn start_with_prices() -> Server {
    let config = "[[carriers]]\nname = 'pretend'\nkind = 'simulated'\n\
                  [[routes]]\nprefix = '44'\ncarriers = ['pretend']\n\
                  [[routes]]\nprefix = '65'\ncarriers = ['pretend']\n\
                  [rates]\ndefault = '0.0100'\nfile = 'rates.csv'\n";
    let mut server = Server::new(config);
    let rates = "prefix,price,currency\n44,0.0420,EUR\n447700,0.05,EUR\n";
    std::fs::write(server.home.path().join("rates.csv"), rates).unwrap();
    server.launch();
    server.wait_until_ready();
    server
}

/// Returns the available and the reserved amount of an account.
pub(crate) fn balance(server: &Server, email: &str) -> (String, String) {
    let accounts = server.list(&["account", "list"]);
    let account = accounts.into_iter().find(|a| a["name"] == email).unwrap();
    let text = |field: &str| account[field].as_str().unwrap().to_owned();
    (text("available"), text("reserved"))
}
