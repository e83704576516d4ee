//! Log lines: written quickly into memory, and from there to stderr by a thread of their own.
//!
//! A busy node writes tens of thousands of lines a second, so a line must cost neither a system call
//! nor a wake-up, and a slow terminal must hold nobody up.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// How long lines gather before they are written.
const GATHER: Duration = Duration::from_millis(20);
/// Bytes that may wait; lines beyond are dropped and counted.
const LIMIT: usize = 8 << 20;

/// Where lines gather; cheap to clone.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    bell: Condvar,
    dropped: AtomicU64,
}

struct Waiting {
    bytes: Vec<u8>,
    /// The thread sleeps for lack of lines, so the next one has to wake it.
    asleep: bool,
    closed: bool,
}

/// Writes what still waits when it is dropped.
pub(crate) struct Flush {
    lines: Lines,
    thread: Option<JoinHandle<()>>,
}

/// Starts the thread that writes to stderr.
pub(crate) fn start() -> io::Result<(Lines, Flush)> {
    let waiting = Waiting { bytes: Vec::new(), asleep: false, closed: false };
    let lines = Lines(Arc::new(Shared {
        waiting: Mutex::new(waiting),
        bell: Condvar::new(),
        dropped: AtomicU64::new(0),
    }));
    let shared = lines.0.clone();
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || shared.run())?;
    Ok((lines.clone(), Flush { lines, thread: Some(thread) }))
}

impl Drop for Flush {
    fn drop(&mut self) {
        self.lines.0.lock().closed = true;
        self.lines.0.bell.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut batch = Vec::new();
        loop {
            let closed = self.take(&mut batch);
            let mut stderr = io::stderr().lock();
            let _ = stderr.write_all(&batch);
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                let _ = writeln!(stderr, "{dropped} log lines were dropped: stderr is too slow");
            }
            batch.clear();
            if closed {
                return;
            }
        }
    }

    /// Waits for lines, lets some more gather, and takes them all. True when there will be no more.
    fn take(&self, batch: &mut Vec<u8>) -> bool {
        let mut waiting = self.lock();
        waiting.asleep = true;
        let idle = |w: &mut Waiting| w.bytes.is_empty() && !w.closed;
        let waiting = self.bell.wait_while(waiting, idle).unwrap_or_else(PoisonError::into_inner);
        let gathered = self.bell.wait_timeout_while(waiting, GATHER, |w| !w.closed);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.bytes, batch);
        waiting.closed
    }
}

impl Write for Lines {
    /// Takes one whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.lock();
        if waiting.bytes.len() + line.len() > LIMIT {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(line.len());
        }
        waiting.bytes.extend_from_slice(line);
        if std::mem::take(&mut waiting.asleep) {
            self.0.bell.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The text form: time, level, words, then `name=value` for each field.
pub(crate) struct Text;

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut line)?;
        write!(line, " {:>5}", event.metadata().level().as_str())?;
        let mut fields = Fields { line, result: Ok(()) };
        event.record(&mut fields);
        fields.result?;
        fields.line.write_char('\n')
    }
}

struct Fields<'a> {
    line: Writer<'a>,
    result: fmt::Result,
}

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        self.result = self.result.and_then(|()| match field.name() {
            "message" => write!(self.line, " {value}"),
            // Where a library's own log call stands, with the path of the machine that built it.
            name if name.starts_with("log.") => Ok(()),
            name => {
                self.line.write_char(' ')?;
                self.line.write_str(name)?;
                self.line.write_char('=')?;
                self.line.write_fmt(value)
            }
        });
    }
}

impl Visit for Fields<'_> {
    /// Texts from outside can't forge a line: whatever is not plain is quoted and escaped.
    fn record_str(&mut self, field: &Field, value: &str) {
        let plain = !value.is_empty()
            && value.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
        match plain {
            true => self.put(field, format_args!("{value}")),
            false => self.put(field, format_args!("{value:?}")),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, format_args!("{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }
}
