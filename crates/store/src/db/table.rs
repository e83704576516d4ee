//! The plain statements on a table, built from its columns.
//!
//! [`Table`] adds the name and the primary key to the columns of a
//! [`record!`](crate::db::record::record), and builds the statements: over many rows as a [`Bulk`],
//! and over one row as a text.
//!
//! Statements are built once, in a `static` [`LazyLock`], and sent as the same text from then on.
//! Statements that are not plain are written by hand, with the column lists of the record.

use crate::db::bulk::Bulk;
use crate::db::record::Column;
use std::fmt::Write;
use std::sync::LazyLock;

/// The text of a statement that is built once.
pub(crate) type Sql = LazyLock<String>;

/// A table: its name and its primary key.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) key: &'static [Column],
}

impl Table {
    /// INSERT of these columns. `constants` are further columns, each with the same value in every
    /// row; `tail` is what follows, such as ON CONFLICT or RETURNING.
    pub(crate) fn insert(
        &self,
        columns: &[Column],
        constants: &[(&str, &str)],
        tail: &str,
    ) -> Bulk {
        let (table, mut names) = (self.name, names(columns));
        let (mut each, mut all) = (placeholders(columns.len()), "*".to_owned());
        for (name, value) in constants {
            for (list, item) in [(&mut names, name), (&mut each, value), (&mut all, value)] {
                let _ = write!(list, ", {item}");
            }
        }
        let unnest = unnest("v", columns);
        Bulk {
            each: format!("INSERT INTO {table} ({names}) VALUES ({each}) {tail}"),
            all: format!("INSERT INTO {table} ({names}) SELECT {all} FROM {unnest} {tail}"),
        }
    }

    /// SELECT of these columns by the primary key. A key that does not exist gives no row.
    pub(crate) fn select(&self, columns: &[Column]) -> Bulk {
        let (table, key) = (self.name, self.key);
        Bulk {
            each: format!("SELECT {} FROM {table} WHERE {}", names(columns), equals(key)),
            all: format!(
                "SELECT {} FROM {} JOIN {table} t ON {}",
                qualified("t", columns),
                unnest("v", key),
                joined("t", "v", key)
            ),
        }
    }

    /// INSERT of one row, with the arguments of [`Self::insert`].
    pub(crate) fn insert_one(
        &self,
        columns: &[Column],
        constants: &[(&str, &str)],
        tail: &str,
    ) -> String {
        self.insert(columns, constants, tail).each
    }

    /// SELECT of these columns of one row by the primary key.
    pub(crate) fn select_one(&self, columns: &[Column]) -> String {
        self.select(columns).each
    }

    /// SELECT of these columns where those of `by` have the given values; `order` is what follows
    /// ORDER BY.
    pub(crate) fn select_by(&self, by: &[Column], columns: &[Column], order: &str) -> String {
        let (table, order_by) = (self.name, if order.is_empty() { "" } else { " ORDER BY " });
        format!("SELECT {} FROM {table} WHERE {}{order_by}{order}", names(columns), equals(by))
    }

    /// UPDATE of these columns of one row by the primary key, with the parameters of
    /// [`Self::update`].
    pub(crate) fn update_one(&self, set: &[Column]) -> String {
        self.update(set).each
    }

    /// DELETE of one row by the primary key.
    pub(crate) fn delete_one(&self) -> String {
        self.delete().each
    }

    /// DELETE where the columns of `by` have the given values.
    pub(crate) fn delete_by(&self, by: &[Column]) -> String {
        format!("DELETE FROM {} WHERE {}", self.name, equals(by))
    }

    /// UPDATE of these columns by the primary key. The parameters are the key, then the new values.
    pub(crate) fn update(&self, set: &[Column]) -> Bulk {
        self.update_fenced(&[], set)
    }

    /// UPDATE by the primary key where the columns of `fence` also have the given values, as a
    /// lease requires. The parameters are the key, the fence, then the new values.
    pub(crate) fn update_fenced(&self, fence: &[Column], set: &[Column]) -> Bulk {
        let (table, by) = (self.name, [self.key, fence].concat());
        let (mut each, mut all) = (String::new(), String::new());
        for (n, Column { name, .. }) in (by.len() + 1..).zip(set) {
            let comma = if each.is_empty() { "" } else { ", " };
            let _ = write!(each, "{comma}{name} = ${n}");
            let _ = write!(all, "{comma}{name} = v.{name}");
        }
        Bulk {
            each: format!("UPDATE {table} SET {each} WHERE {}", equals(&by)),
            all: format!(
                "UPDATE {table} t SET {all} FROM {} WHERE {}",
                unnest("v", &[&by, set].concat()),
                joined("t", "v", &by)
            ),
        }
    }

    /// DELETE by the primary key.
    pub(crate) fn delete(&self) -> Bulk {
        self.delete_fenced(&[])
    }

    /// DELETE by the primary key where the columns of `fence` also have the given values, as a
    /// lease requires.
    pub(crate) fn delete_fenced(&self, fence: &[Column]) -> Bulk {
        let (table, by) = (self.name, [self.key, fence].concat());
        Bulk {
            each: format!("DELETE FROM {table} WHERE {}", equals(&by)),
            all: format!(
                "DELETE FROM {table} t USING {} WHERE {}",
                unnest("v", &by),
                joined("t", "v", &by)
            ),
        }
    }
}

/// Returns `a, b`.
pub(crate) fn names(columns: &[Column]) -> String {
    list(columns, ", ", |_, c| c.name.to_owned())
}

/// Returns `t.a, t.b`.
pub(crate) fn qualified(table: &str, columns: &[Column]) -> String {
    list(columns, ", ", |_, c| format!("{table}.{}", c.name))
}

/// Returns `a = $1 AND b = $2`.
pub(crate) fn equals(columns: &[Column]) -> String {
    list(columns, " AND ", |n, c| format!("{} = ${n}", c.name))
}

/// Returns `t.a = v.a AND t.b = v.b`.
pub(crate) fn joined(table: &str, values: &str, columns: &[Column]) -> String {
    list(columns, " AND ", |_, Column { name, .. }| format!("{table}.{name} = {values}.{name}"))
}

/// Returns `unnest($1::bigint[], $2::uuid[]) AS v (a, b)`: the rows of a bulk statement on
/// PostgreSQL.
pub(crate) fn unnest(alias: &str, columns: &[Column]) -> String {
    let arrays = list(columns, ", ", |n, c| format!("${n}::{}[]", c.sql_type));
    format!("unnest({arrays}) AS {alias} ({})", names(columns))
}

/// Returns `$1, $2`.
fn placeholders(count: usize) -> String {
    (1..=count).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}

/// Joins the columns, which `format` gets with their positions, counted from 1.
fn list(columns: &[Column], separator: &str, format: impl Fn(usize, &Column) -> String) -> String {
    let items = (1..).zip(columns).map(|(n, column)| format(n, column));
    items.collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::record::{Record, columns, record};
    use heliograph_domain::id::{AccountId, MessageId};
    use heliograph_domain::time::Timestamp;

    record! {
        struct Reply {
            account: AccountId,
            id: MessageId,
            user: Option<String> => author,
            at: Timestamp,
        }
    }

    const REPLIES: Table = Table { name: "replies", key: columns!(Reply: account, id) };

    #[test]
    fn plain_statements_follow_from_the_declaration() {
        let insert = REPLIES.insert(Reply::COLUMNS, &[("tries", "0")], "ON CONFLICT DO NOTHING");
        assert_eq!(
            insert.each,
            "INSERT INTO replies (account, id, author, at, tries) VALUES ($1, $2, $3, $4, 0) ON CONFLICT DO NOTHING"
        );
        assert_eq!(
            insert.all,
            "INSERT INTO replies (account, id, author, at, tries) SELECT *, 0 FROM unnest($1::bigint[], $2::uuid[], \
             $3::text[], $4::bigint[]) AS v (account, id, author, at) ON CONFLICT DO NOTHING"
        );
        let select = REPLIES.select(columns!(Reply: at));
        assert_eq!(select.each, "SELECT at FROM replies WHERE account = $1 AND id = $2");
        assert_eq!(
            select.all,
            "SELECT t.at FROM unnest($1::bigint[], $2::uuid[]) AS v (account, id) JOIN replies t ON \
             t.account = v.account AND t.id = v.id"
        );
        let update = REPLIES.update_fenced(columns!(Reply: at), columns!(Reply: user => author));
        assert_eq!(
            update.each,
            "UPDATE replies SET author = $4 WHERE account = $1 AND id = $2 AND at = $3"
        );
        assert_eq!(
            update.all,
            "UPDATE replies t SET author = v.author FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[]) \
             AS v (account, id, at, author) WHERE t.account = v.account AND t.id = v.id AND t.at = v.at"
        );
        let by = columns!(Reply: account);
        assert_eq!(
            REPLIES.select_by(by, columns!(Reply: id, at), "id"),
            "SELECT id, at FROM replies WHERE account = $1 ORDER BY id"
        );
        assert_eq!(REPLIES.delete_by(by), "DELETE FROM replies WHERE account = $1");
        assert_eq!(
            REPLIES.delete().all,
            "DELETE FROM replies t USING unnest($1::bigint[], $2::uuid[]) AS v (account, id) WHERE \
             t.account = v.account AND t.id = v.id"
        );
    }
}
