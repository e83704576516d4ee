//! Two accounts in test and live mode on one server, and the objects that each of these four
//! tenants must see.

use crate::support::api::{data, get};
use crate::support::http::{HttpResponse, Request};
use crate::support::optouts::{LISTS, add, make};
use crate::support::ports::Port;
use crate::support::server::Server;
use crate::support::wait::eventually;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A number that answers STOP.
const HANDSET: &str = "447700900009";
/// A number whose live messages stay queued, because its carrier is down.
const WAITING: &str = "6598234567";
const INBOUND: &str = "/v1/inbound-messages";

/// A server with four tenants, and the port of a carrier that is down.
pub(crate) struct Tenants {
    pub(crate) server: Server,
    pub(crate) all: Vec<TenantModel>,
    _away: Port,
}

/// An account in one mode: its key and its objects.
pub(crate) struct TenantModel {
    pub(crate) account: &'static str,
    key: String,
    /// A digit in a number that only this tenant has.
    digit: usize,
    messages: Vec<String>,
    replies: Vec<String>,
    lists: Vec<String>,
}

/// An operation of the OpenAPI document.
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    about: Value,
}

impl Tenants {
    pub(crate) fn new() -> Self {
        let away = Port::reserve();
        let config = format!(
            "[[carriers]]\nname = 'pretend'\nkind = 'simulated'\n\
             [[carriers]]\nname = 'away'\nkind = 'smpp'\nhost = '127.0.0.1'\nport = {}\n\
             [[routes]]\nprefix = '44'\ncarriers = ['pretend']\n\
             [[routes]]\nprefix = '65'\ncarriers = ['away']\n\
             [[numbers]]\nnumber = '447700900555'\naccount = 'ann@example.com'\n\
             [[numbers]]\nnumber = '447700900556'\naccount = 'bob@example.com'\n\
             [rates]\ndefault = '0.0100'\n",
            away.number
        );
        let mut server = Server::new(&config);
        let accounts = [("ann@example.com", "447700900555"), ("bob@example.com", "447700900556")];
        let mut keys = Vec::new();
        for (account, ours) in accounts {
            keys.push((account, ours, server.live_key(account, "10.00")));
            let test = server.stdout(&["key", "create", "--account", account, "--test"]);
            keys.push((account, ours, test));
        }
        server.launch();
        server.wait_until_ready();
        let all = keys.into_iter().zip(1..);
        let all =
            all.map(|((account, ours, key), n)| TenantModel::fill(&server, account, ours, key, n));
        Self { all: all.collect(), server, _away: away }
    }

    /// Waits until all messages have ended; returns everything that each tenant sees.
    pub(crate) fn shown(&self) -> Vec<BTreeMap<String, Value>> {
        self.all.iter().for_each(|tenant| tenant.settle(&self.server));
        let operations = operations(&self.server);
        self.all.iter().map(|tenant| tenant.shown(&self.server, &operations)).collect()
    }
}

impl TenantModel {
    /// Creates objects of all kinds. Texts, numbers and names are the same for all tenants, except
    /// for one number.
    fn fill(server: &Server, account: &'static str, ours: &str, key: String, digit: usize) -> Self {
        let send = |recipient: &str| {
            let body = json!({ "originator": ours, "recipient": recipient, "text": "Hello",
                               "reference": "order 7", "blockOptout": false });
            server.accepted(&key, &body)
        };
        let messages = [HANDSET, HANDSET, WAITING].map(send).to_vec();
        let replies = eventually("both replies have arrived", || {
            let ids = ids(&data(server, &key, INBOUND));
            (ids.len() == 2).then_some(ids)
        });
        let default = get(server, &key, &format!("{LISTS}/default"))["id"].clone();
        let lists = vec![default.as_str().unwrap().to_owned(), make(server, &key, "Sale")];
        let tenant = Self { account, key, digit, messages, replies, lists };
        for list in &tenant.lists {
            for number in tenant.numbers() {
                let response = add(server, &tenant.key, list, &json!({ "number": number }));
                assert!([200, 201].contains(&response.status), "{}", response.text());
            }
        }
        tenant
    }

    /// Returns the numbers on each list; no other tenant has the second number.
    fn numbers(&self) -> [String; 2] {
        [HANDSET.to_owned(), format!("44770090010{}", self.digit)]
    }

    /// Returns the paths of a documented path with this tenant's objects.
    pub(crate) fn addresses(&self, path: &str) -> Vec<String> {
        let objects = match path {
            "/v1/messages/{id}" | "/v1/messages/{id}/cancel" => &self.messages,
            "/v1/inbound-messages/{id}" => &self.replies,
            "/v1/optout-lists/{id}"
            | "/v1/optout-lists/{id}/numbers"
            | "/v1/optout-lists/{id}/numbers/import"
            | "/v1/optout-lists/{id}/numbers/{number}" => &self.lists,
            _ if !path.contains('{') => return vec![path.to_owned()],
            _ => panic!("{path} is new: create objects in `fill`, and return them here"),
        };
        let [_, own] = self.numbers();
        objects.iter().map(|id| path.replace("{id}", id).replace("{number}", &own)).collect()
    }

    /// Returns the paths with this tenant's lists and another tenant's number.
    pub(crate) fn mixed(&self, other: &Self, path: &str) -> Vec<String> {
        let [_, theirs] = other.numbers();
        let path = path.replace("{number}", &theirs);
        if path.matches('{').count() == 1 && path.ends_with(&theirs) {
            return self.lists.iter().map(|id| path.replace("{id}", id)).collect();
        }
        Vec::new()
    }

    /// Returns the expected ids of a documented list, in the format of [`ids`].
    pub(crate) fn members(&self, path: &str) -> Vec<String> {
        match path {
            "/v1/messages" => self.messages.clone(),
            "/v1/inbound-messages" => self.replies.clone(),
            "/v1/optout-lists" => self.lists.clone(),
            "/v1/optout-lists/{id}/numbers" => self.numbers().to_vec(),
            _ => panic!("{path} is a new list: return its expected ids here"),
        }
    }

    pub(crate) fn ask(
        &self,
        server: &Server,
        operation: &Operation,
        address: &str,
    ) -> HttpResponse {
        server.ask(&operation.request(address).key(&self.key))
    }

    /// Reads a list in pages of one item; returns the items and the cursors.
    pub(crate) fn walk(&self, server: &Server, address: &str) -> (Vec<Value>, Vec<String>) {
        let (mut all, mut cursors) = (Vec::new(), Vec::<String>::new());
        let sign = if address.contains('?') { '&' } else { '?' };
        loop {
            let cursor = cursors.last().map(|c| format!("&cursor={c}")).unwrap_or_default();
            let page = get(server, &self.key, &format!("{address}{sign}limit=1{cursor}"));
            all.extend(page["data"].as_array().unwrap().clone());
            let Some(next) = page["nextCursor"].as_str() else { return (all, cursors) };
            cursors.push(next.to_owned());
        }
    }

    /// Waits until all messages have ended, except for those that stay queued.
    fn settle(&self, server: &Server) {
        eventually("all messages have ended", || {
            let all = self.walk(server, "/v1/messages").0;
            let moves = |m: &Value| {
                ["QUEUED", "SENT"].iter().any(|status| m["status"] == *status)
                    && !(m["recipient"] == WAITING && m["mode"] == "live")
            };
            (!all.iter().any(moves)).then_some(())
        });
    }

    fn shown(&self, server: &Server, operations: &[Operation]) -> BTreeMap<String, Value> {
        let mut shown = BTreeMap::new();
        for operation in operations.iter().filter(|o| o.method == "GET") {
            for address in self.addresses(&operation.path) {
                let response = self.ask(server, operation, &address);
                let value = match response.status {
                    200 if operation.is_list() => json!(self.walk(server, &address).0),
                    200 => response.json(),
                    // The tenant itself has deleted it.
                    status => json!(status),
                };
                shown.insert(address, value);
            }
        }
        shown
    }
}

impl Operation {
    /// Returns its request, with the example in the document as body.
    pub(crate) fn request(&self, address: &str) -> Request {
        let mut request = Request::new(&self.method, address);
        if self.takes("IdempotencyKey") {
            request = request.header("Idempotency-Key", "the same for all tenants");
        }
        let Some(contents) = self.about["requestBody"]["content"].as_object() else {
            return request;
        };
        let (kind, content) = contents.iter().next().unwrap();
        let first = content["examples"].as_object().and_then(|all| all.values().next());
        let example = first.map_or(&content["example"], |example| &example["value"]);
        assert!(!example.is_null(), "{} {} has no example", self.method, self.path);
        let body = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        request.header("Content-Type", kind.as_str()).body(body)
    }

    fn takes(&self, parameter: &str) -> bool {
        let reference = format!("#/components/parameters/{parameter}");
        let parameters = self.about["parameters"].as_array();
        parameters.is_some_and(|all| all.iter().any(|p| p["$ref"] == reference.as_str()))
    }

    pub(crate) fn is_list(&self) -> bool {
        self.takes("Cursor")
    }

    /// Returns filters of a list, at least one for each documented parameter.
    pub(crate) fn filters(&self) -> Vec<String> {
        let named = self.about["parameters"].as_array().unwrap().iter();
        let named = named.filter(|p| p["in"] == "query").map(|p| p["name"].as_str().unwrap());
        let values = |name| match name {
            "status" => vec!["QUEUED", "SENT", "DELIVERED", "FAILED", "CANCELLED"],
            "recipient" => vec![HANDSET, WAITING],
            "originator" => vec!["Shop", "Heliograph"],
            "reference" => vec!["order%207"],
            "campaignId" => vec!["0190b0a0-0000-7000-8000-000000000000"],
            "from" => vec!["2020-01-01T00:00:00Z"],
            "to" => vec!["2099-01-01T00:00:00Z"],
            _ => panic!("{name} is a new filter of {}: return its values here", self.path),
        };
        named.flat_map(|n| values(n).into_iter().map(move |v| format!("?{n}={v}"))).collect()
    }
}

/// Returns all operations that need a key.
pub(crate) fn operations(server: &Server) -> Vec<Operation> {
    let document = server.ask(&Request::get("/v1/openapi.json")).json();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, about) in item.as_object().unwrap() {
            let (method, path, about) = (method.to_ascii_uppercase(), path.clone(), about.clone());
            all.push(Operation { method, path, about });
        }
    }
    all.retain(|operation| operation.about["security"] != json!([]));
    all
}

/// Returns the ids (or numbers) of the items of a list.
pub(crate) fn ids(objects: &[Value]) -> Vec<String> {
    let id = |item: &Value| {
        let id = item["id"].as_str().or(item["number"].as_str());
        id.unwrap_or_else(|| panic!("return here the id of {item}")).to_owned()
    };
    objects.iter().map(id).collect()
}
