//! Rows on their way out of an answer, and what several tables' files read from them.

use crate::db_copy as copy;
use crate::db_postgres as postgres;
use crate::db_sqlite as sqlite;
use crate::error::{Error, Result};
use crate::value::Cell;
use heliograph_domain::account::Mode;
use heliograph_domain::event::{Kind, Occurrence};
use heliograph_domain::id::{AccountId, ApiKeyId, CarrierId, EndpointId, EventId, MessageId};
use heliograph_domain::message::Message;
use heliograph_domain::money::Amount;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::{CountryCode, Recipient};
use heliograph_domain::text::Encoding;
use heliograph_domain::time::Timestamp;
use uuid::Uuid;

/// One row of an answer. Columns are counted from 0.
pub(crate) enum Row<'r> {
    Sqlite(&'r sqlite::RawRow<'r>),
    Postgres(&'r postgres::RawRow),
}

impl Row<'_> {
    pub(crate) fn int(&self, i: usize) -> Result<i64> {
        self.opt_int(i)?.ok_or_else(|| Error::corrupt(format_args!("column {i} is null")))
    }

    pub(crate) fn opt_int(&self, i: usize) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(r) => sqlite::opt_int(r, i),
            Self::Postgres(r) => postgres::opt_int(r, i),
        }
    }

    /// An integer that must fit a narrower type.
    pub(crate) fn small<T: TryFrom<i64>>(&self, i: usize) -> Result<T> {
        narrow(self.int(i)?, i)
    }

    pub(crate) fn opt_small<T: TryFrom<i64>>(&self, i: usize) -> Result<Option<T>> {
        self.opt_int(i)?.map(|v| narrow(v, i)).transpose()
    }

    pub(crate) fn time(&self, i: usize) -> Result<Timestamp> {
        self.int(i).map(Timestamp)
    }

    pub(crate) fn opt_time(&self, i: usize) -> Result<Option<Timestamp>> {
        Ok(self.opt_int(i)?.map(Timestamp))
    }

    pub(crate) fn text(&self, i: usize) -> Result<String> {
        self.opt_text(i)?.ok_or_else(|| Error::corrupt(format_args!("column {i} is null")))
    }

    pub(crate) fn opt_text(&self, i: usize) -> Result<Option<String>> {
        match self {
            Self::Sqlite(r) => sqlite::opt_text(r, i),
            Self::Postgres(r) => postgres::opt_text(r, i),
        }
    }

    pub(crate) fn uuid(&self, i: usize) -> Result<Uuid> {
        self.opt_uuid(i)?.ok_or_else(|| Error::corrupt(format_args!("column {i} is null")))
    }

    pub(crate) fn opt_uuid(&self, i: usize) -> Result<Option<Uuid>> {
        match self {
            Self::Sqlite(r) => sqlite::opt_uuid(r, i),
            Self::Postgres(r) => postgres::opt_uuid(r, i),
        }
    }

    /// Whatever stands there.
    pub(crate) fn cell(&self, i: usize) -> Result<Cell> {
        match self {
            Self::Sqlite(r) => copy::sqlite_cell(r, i),
            Self::Postgres(r) => copy::postgres_cell(r, i),
        }
    }

    pub(crate) fn bytes(&self, i: usize) -> Result<Vec<u8>> {
        match self {
            Self::Sqlite(r) => sqlite::bytes(r, i),
            Self::Postgres(r) => postgres::bytes(r, i),
        }
    }
}

fn narrow<T: TryFrom<i64>>(v: i64, i: usize) -> Result<T> {
    T::try_from(v).map_err(|_| Error::corrupt(format_args!("{v} in column {i} is out of range")))
}

pub(crate) fn mode(r: &Row<'_>, at: usize) -> Result<Mode> {
    Mode::from_code(r.small(at)?).ok_or_else(|| Error::corrupt("unknown mode"))
}

/// Reads the eighteen columns of a message from column `at` on.
pub(crate) fn message(r: &Row<'_>, at: usize) -> Result<Message> {
    Ok(Message {
        id: MessageId(r.uuid(at)?),
        account: AccountId(r.int(at + 1)?),
        mode: mode(r, at + 2)?,
        api_key: r.opt_uuid(at + 3)?.map(ApiKeyId),
        campaign: r.opt_uuid(at + 4)?,
        recipient: Recipient(r.small(at + 5)?),
        country: r.opt_text(at + 6)?.as_deref().and_then(CountryCode::parse),
        originator: Originator::from_stored(r.text(at + 7)?),
        text: r.text(at + 8)?,
        reference: r.opt_text(at + 9)?,
        encoding: Encoding::from_code(r.small(at + 10)?)
            .ok_or_else(|| Error::corrupt("unknown encoding"))?,
        parts: r.small(at + 11)?,
        part_price: Amount(r.int(at + 12)?),
        carrier: CarrierId(r.small(at + 13)?),
        optout_list: r.opt_uuid(at + 14)?,
        accepted_at: r.time(at + 15)?,
        scheduled_for: r.opt_time(at + 16)?,
        expires_at: r.time(at + 17)?,
    })
}

/// Reads the eight columns of an event from column `at` on.
pub(crate) fn occurrence(r: &Row<'_>, at: usize) -> Result<Occurrence> {
    Ok(Occurrence {
        account: AccountId(r.int(at)?),
        id: EventId(r.uuid(at + 1)?),
        mode: mode(r, at + 2)?,
        kind: Kind::from_code(r.small(at + 3)?).ok_or_else(|| Error::corrupt("unknown kind"))?,
        test: r.int(at + 4)? != 0,
        subject: r.opt_uuid(at + 5)?,
        at: r.time(at + 6)?,
        endpoint: EndpointId(r.small(at + 7)?),
    })
}
