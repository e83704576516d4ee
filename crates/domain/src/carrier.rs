//! Carriers and routes: who takes a message, and over what.

use crate::id::CarrierId;
use crate::phone::Recipient;
use crate::time::Timestamp;

/// The name of the carrier that every test message goes to.
pub const SIMULATED: &str = "simulated";

/// One rule: recipients that begin with `prefix` go to the first of `carriers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Leading digits of the international number; empty matches all.
    pub prefix: String,
    /// In order of preference, never empty.
    pub carriers: Vec<CarrierId>,
}

/// The routing table: the longest prefix wins.
#[derive(Clone, Debug, Default)]
pub struct Routes(Vec<Route>);

impl Routes {
    /// A table of these rules, in any order.
    pub fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|r| std::cmp::Reverse(r.prefix.len()));
        Self(routes)
    }

    /// The carriers for `recipient`, in order of preference; `None` when no rule matches.
    pub fn find(&self, recipient: Recipient) -> Option<&[CarrierId]> {
        let digits = recipient.to_string();
        let route = self.0.iter().find(|r| digits.starts_with(&r.prefix))?;
        Some(&route.carriers)
    }
}

/// How one node's line to one carrier is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindStatus {
    /// To whom.
    pub carrier: CarrierId,
    /// How many binds there should be.
    pub binds: u16,
    /// How many of them are up.
    pub bound: u16,
    /// The most parts that may be without an answer.
    pub window: u32,
    /// How many are.
    pub unanswered: u32,
    /// Whether the SMSC has just asked for a slower pace.
    pub throttled: bool,
    /// What went wrong last, and when.
    pub last_error: Option<(String, Timestamp)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let route =
            |prefix: &str, id| Route { prefix: prefix.into(), carriers: vec![CarrierId(id)] };
        let routes = Routes::new(vec![route("", 1), route("4477", 3), route("44", 2)]);
        for (number, carrier) in [(447_700_900_123, 3), (442_079_460_000, 2), (6_598_234_567, 1)] {
            assert_eq!(routes.find(Recipient(number)), Some([CarrierId(carrier)].as_slice()));
        }
        assert_eq!(Routes::default().find(Recipient(447_700_900_123)), None);
    }
}
