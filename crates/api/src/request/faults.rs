//! The faults of a request body, each with the location of its value.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode, shorten};
use std::fmt::{Display, Write as _};

/// The maximum number of faults in a response. A list of thousands of items can have the same fault
/// in each of them.
const MAX_FAULTS: usize = 100;

/// A step from a value to one that it contains.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathStep {
    /// A field of an object.
    Field(&'static str),
    /// An item of an array.
    Item(usize),
}

/// The faults found so far, and the location of the value that is being read.
#[derive(Default, Debug)]
pub(crate) struct Faults {
    path: Vec<PathStep>,
    listed: Vec<Fault>,
    /// The number of all faults, including those that are not listed.
    count: usize,
}

impl Faults {
    /// Calls `read` for a value inside of the current one.
    pub(crate) fn within<T>(&mut self, step: PathStep, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }

    /// Records a fault of the current value.
    pub(crate) fn add(&mut self, code: FaultCode, detail: impl Display) {
        self.record(None, code, detail);
    }

    /// Records a fault of a field of the current object.
    pub(crate) fn add_field(&mut self, name: &str, code: FaultCode, detail: impl Display) {
        self.record(Some(name), code, detail);
    }

    /// Only the detail of a listed fault is formatted, which can be expensive.
    fn record(&mut self, field: Option<&str>, code: FaultCode, detail: impl Display) {
        self.count = self.count.saturating_add(1);
        if self.listed.len() < MAX_FAULTS {
            let (pointer, detail) = (self.pointer(field), detail.to_string());
            self.listed.push(Fault { pointer, code, detail });
        }
    }

    /// Returns the location as a JSON Pointer (RFC 6901), as a fragment of a URI.
    fn pointer(&self, field: Option<&str>) -> String {
        let mut pointer = String::from("#");
        for step in &self.path {
            match step {
                PathStep::Field(name) => push_name(&mut pointer, name),
                PathStep::Item(index) => push_name(&mut pointer, &index.to_string()),
            }
        }
        if let Some(name) = field {
            push_name(&mut pointer, name);
        }
        pointer
    }

    /// Returns all faults as one problem, if there are any.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        let detail = match self.count {
            0 => return Ok(()),
            1 => "1 validation error. See 'errors'.".to_owned(),
            n if n > MAX_FAULTS => {
                format!("{n} validation errors. The first {MAX_FAULTS} are listed in 'errors'.")
            }
            n => format!("{n} validation errors. See 'errors'."),
        };
        Err(Problem::invalid(detail, self.listed))
    }
}

fn push_name(pointer: &mut String, name: &str) {
    pointer.push('/');
    for c in shorten(name).chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c if is_fragment(c) => pointer.push(c),
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string never fails.
                    let _ = write!(pointer, "%{byte:02X}");
                }
            }
        }
    }
}

/// Returns whether a fragment of a URI may contain `c` as it is (RFC 3986, 3.5).
fn is_fragment(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._!$&'()*+,;=:@?".contains(c)
}
