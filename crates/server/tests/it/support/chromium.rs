//! Chromium, driven by chromedriver.

use crate::support::process::Process;
use crate::support::wait::{TIMEOUT, eventually, within};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::key::Key;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::process::Command;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use url::{ParseError, Url};

const ARGUMENTS: [&str; 11] = [
    "--headless",
    "--lang=en-GB",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
];

/// A browser with one tab.
pub(crate) struct Chromium {
    client: Option<Client>,
    runtime: Runtime,
    base: String,
    _driver: Process,
    _profile: TempDir,
}

/// A command that WebDriver does not define.
#[derive(Debug)]
struct VendorCommand {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for VendorCommand {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

/// Starts chromedriver and returns its port. If it ends before it listens, it is started again.
fn start_driver() -> (Process, u16) {
    let started = (0..5).find_map(|_| {
        let mut driver = Process::start(Command::new("chromedriver").arg("--port=0"));
        let port = eventually("chromedriver listens (apt-get install chromium-driver)", || {
            let ended = driver.ended().is_some();
            let stdout = driver.stdout.text();
            let port = stdout.split_once("started successfully on port ");
            let port = port.and_then(|(_, rest)| rest.split_once(['.', '\n'])?.0.parse().ok());
            (ended || port.is_some()).then_some(port)
        });
        port.map(|port| (driver, port))
    });
    started.expect("chromedriver ended five times")
}

impl Chromium {
    /// Starts a browser for the service with this base URL.
    pub(crate) fn start(base: &str) -> Self {
        let (driver, port) = start_driver();
        let profile = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities(&profile));
        let address = format!("http://127.0.0.1:{port}");
        let client = Some(runtime.block_on(builder.connect(&address)).unwrap());
        Self { client, runtime, base: base.to_owned(), _driver: driver, _profile: profile }
    }

    fn client(&self) -> &Client {
        self.client.as_ref().unwrap()
    }

    fn special(&self, path: &'static str, body: Value) -> Value {
        self.runtime.block_on(self.client().issue_cmd(VendorCommand { path, body })).unwrap()
    }

    /// Sends a command of the Chrome DevTools Protocol.
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.special("goog/cdp/execute", json!({ "cmd": command, "params": parameters }))
    }

    /// Sets the size of the window in CSS pixels.
    pub(crate) fn widen(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
                           "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Sets the preferred color scheme, `light` or `dark`, and reduced motion.
    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Disables the scripts of all pages.
    pub(crate) fn without_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    }

    /// Opens a page of the service, or any address.
    pub(crate) fn open(&self, address: &str) {
        let whole = match address.strip_prefix('/') {
            Some(_) => format!("{}{address}", self.base),
            None => address.to_owned(),
        };
        self.runtime.block_on(self.client().goto(&whole)).unwrap();
    }

    /// Returns path and query of the current page, without the mode that scripts add.
    pub(crate) fn place(&self) -> String {
        let place = self.address();
        let (path, query) = place.split_once('?').unwrap_or((&place, ""));
        let kept: Vec<_> = query.split('&').filter(|p| !p.starts_with("mode=")).collect();
        let query = kept.join("&");
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    /// Returns path and query of the current page, as in the address bar.
    pub(crate) fn address(&self) -> String {
        let url = self.runtime.block_on(self.client().current_url()).unwrap();
        url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
    }

    /// Goes back in the history.
    pub(crate) fn back(&self) {
        self.runtime.block_on(self.client().back()).unwrap();
    }

    /// Presses Escape.
    pub(crate) fn escape(&self) {
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Escape", "code": "Escape",
                              "windowsVirtualKeyCode": 27 });
            self.devtools("Input.dispatchKeyEvent", &key);
        }
    }

    /// Runs a script in the page.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.runtime.block_on(self.client().execute(script, Vec::new())).unwrap()
    }

    /// Runs a script that calls back when it is done.
    pub(crate) fn run_async(&self, script: &str) -> Value {
        self.runtime.block_on(self.client().execute_async(script, Vec::new())).unwrap()
    }

    pub(crate) fn screenshot(&self) -> Vec<u8> {
        self.runtime.block_on(self.client().screenshot()).unwrap()
    }

    /// Repeats an action on the first visible element, until the action succeeds.
    fn on(&self, path: &str, mut act: impl AsyncFnMut(&Element) -> Result<(), CmdError>) {
        let mut last = String::new();
        let done = within(TIMEOUT, || {
            let tried = self.runtime.block_on(async {
                for element in self.client().find_all(Locator::XPath(path)).await? {
                    if element.is_displayed().await? {
                        act(&element).await?;
                        return Ok(true);
                    }
                }
                Ok::<_, CmdError>(false)
            });
            last = format!("{:?}", tried.as_ref().err());
            tried.unwrap_or(false).then_some(())
        });
        assert!(done.is_some(), "{}: failed at {path}: {last}\n{}", self.place(), self.text());
    }

    /// Clicks the button, link or summary with this text.
    pub(crate) fn press(&self, words: &str) {
        let says = format!("[contains(normalize-space(.), \"{words}\")]");
        let all = ["button", "a", "summary"].map(|kind| format!("//{kind}{says}"));
        self.press_at(&all.join(" | "));
    }

    /// Clicks the element with this XPath.
    pub(crate) fn press_at(&self, path: &str) {
        self.on(path, async |element| element.click().await);
    }

    /// Replaces the value of the field with this name.
    pub(crate) fn fill(&self, name: &str, words: &str) {
        let path = format!("//main//*[@name=\"{name}\" and not(@type=\"hidden\")]");
        self.on(&path, async |element| {
            element.clear().await?;
            element.send_keys(words).await
        });
    }

    /// Presses Enter in the field with this name.
    pub(crate) fn enter(&self, name: &str) {
        let path = format!("//main//*[@name=\"{name}\" and not(@type=\"hidden\")]");
        self.on(&path, async |element| {
            element.send_keys(&char::from(Key::Enter).to_string()).await
        });
    }

    /// Returns the text of the element with this id.
    pub(crate) fn text_of(&self, id: &str) -> String {
        let mut text = String::new();
        self.on(&format!("//*[@id=\"{id}\"]"), async |element| {
            text = element.text().await?;
            Ok(())
        });
        text
    }

    /// Returns the text of the page.
    pub(crate) fn text(&self) -> String {
        let text = async { self.client().find(Locator::Css("body")).await?.text().await };
        self.runtime.block_on(text).unwrap_or_default()
    }

    /// Waits until the page contains this text.
    pub(crate) fn sees(&self, words: &str) {
        let seen = within(TIMEOUT, || self.text().contains(words).then_some(()));
        assert!(seen.is_some(), "{}: no {words:?} in\n{}", self.place(), self.text());
    }

    /// Waits until the current path has this prefix.
    pub(crate) fn arrives(&self, path: &str) {
        let arrived = within(TIMEOUT, || self.place().starts_with(path).then_some(()));
        assert!(arrived.is_some(), "{path}: still {}\n{}", self.place(), self.text());
    }

    /// Reloads the page until it contains this text.
    pub(crate) fn sees_again(&self, words: &str) {
        eventually(&format!("{words:?} on {}", self.place()), || {
            self.runtime.block_on(self.client().refresh()).unwrap();
            self.text().contains(words).then_some(())
        });
    }

    /// Returns the errors and warnings in the console since the last call.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.special("se/log", json!({ "type": "browser" }));
        let all = log.as_array().into_iter().flatten();
        let bad = all.filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING");
        bad.map(|entry| entry["message"].to_string()).collect()
    }

    /// Returns the requests to other hosts since the last call.
    pub(crate) fn asked_elsewhere(&self) -> Vec<String> {
        let log = self.special("se/log", json!({ "type": "performance" }));
        let all = log.as_array().into_iter().flatten();
        let events = all.filter_map(|entry| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let sent = event["message"]["method"] == "Network.requestWillBeSent";
            let url = event["message"]["params"]["request"]["url"].as_str()?.to_owned();
            (sent && url.starts_with("http") && !url.starts_with(&self.base)).then_some(url)
        });
        events.collect()
    }
}

fn capabilities(profile: &TempDir) -> Capabilities {
    let profile = format!("--user-data-dir={}", profile.path().display());
    let mut arguments: Vec<_> = ARGUMENTS.iter().map(ToString::to_string).collect();
    arguments.push(profile);
    if rustix::process::geteuid().is_root() {
        arguments.push("--no-sandbox".to_owned());
    }
    let wanted = json!({
        "goog:chromeOptions": { "args": arguments },
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
    });
    wanted.as_object().unwrap().clone()
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            // Otherwise Chromium would keep running without its driver.
            let _ = self.runtime.block_on(client.close());
        }
    }
}
