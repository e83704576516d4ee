//! Buffered logging: lines are collected in memory and written to stderr by a separate thread.
//!
//! A busy node logs tens of thousands of lines per second, so a line must cost neither a system
//! call nor a wake-up, and a slow terminal must not block the caller.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// The time for which lines are collected before they are written.
const FLUSH_INTERVAL: Duration = Duration::from_millis(20);
/// The size of the buffer in bytes; lines beyond it are dropped and counted.
const MAX_BUFFERED: usize = 8 << 20;

/// The time for which the end of the process waits for a slow reader of stderr.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(1);

/// Writes lines to the buffer; cheap to clone.
#[derive(Clone)]
pub(crate) struct LogWriter(Arc<Shared>);

struct Shared {
    buffer: Mutex<Buffer>,
    wake: Condvar,
    dropped: AtomicU64,
}

struct Buffer {
    bytes: Vec<u8>,
    /// True while the thread sleeps for lack of lines; the next line has to wake it.
    asleep: bool,
    closed: bool,
}

/// Writes the rest of the buffer when dropped, as far as stderr takes it within [`MAX_EXIT_WAIT`].
pub(crate) struct FlushGuard {
    lines: LogWriter,
    /// Disconnected when the thread has ended.
    thread: Receiver<()>,
}

/// Starts the thread that writes to stderr.
pub(crate) fn start() -> io::Result<(LogWriter, FlushGuard)> {
    start_with(io::stderr())
}

fn start_with(output: impl Write + Send + 'static) -> io::Result<(LogWriter, FlushGuard)> {
    let buffer = Buffer { bytes: Vec::new(), asleep: false, closed: false };
    let lines = LogWriter(Arc::new(Shared {
        buffer: Mutex::new(buffer),
        wake: Condvar::new(),
        dropped: AtomicU64::new(0),
    }));
    let shared = lines.0.clone();
    let (running, thread) = mpsc::channel();
    std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        shared.run(output);
        drop(running);
    })?;
    Ok((lines.clone(), FlushGuard { lines, thread }))
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.lines.0.lock().closed = true;
        self.lines.0.wake.notify_one();
        // Nothing is ever sent: this returns when the thread ends.
        let _ = self.thread.recv_timeout(MAX_EXIT_WAIT);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut output: impl Write) {
        let mut batch = Vec::new();
        loop {
            let closed = self.take(&mut batch);
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                let _ = writeln!(batch, "{dropped} log lines dropped: stderr is too slow");
            }
            let _ = output.write_all(&batch);
            batch.clear();
            if closed {
                return;
            }
        }
    }

    /// Waits for lines, lets more collect, and moves them to `batch`. Returns true when the log is
    /// closed.
    fn take(&self, batch: &mut Vec<u8>) -> bool {
        let mut buffer = self.lock();
        buffer.asleep = true;
        let idle = |b: &mut Buffer| b.bytes.is_empty() && !b.closed;
        let buffer = self.wake.wait_while(buffer, idle).unwrap_or_else(PoisonError::into_inner);
        let collected = self.wake.wait_timeout_while(buffer, FLUSH_INTERVAL, |b| !b.closed);
        let (mut buffer, _) = collected.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut buffer.bytes, batch);
        buffer.closed
    }
}

impl Write for LogWriter {
    /// Buffers one whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut buffer = self.0.lock();
        if buffer.bytes.len() + line.len() > MAX_BUFFERED {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(line.len());
        }
        buffer.bytes.extend_from_slice(line);
        if std::mem::take(&mut buffer.asleep) {
            self.0.wake.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The text format: time, level, message, then `name=value` for each field.
pub(crate) struct TextFormat;

impl<S, N> FormatEvent<S, N> for TextFormat
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
            // The source location of a `log` call, with a path of the build machine.
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
    /// Prevents log injection: a value that is not a plain word is quoted and escaped.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, SyncSender};

    /// An output whose reader takes one write at a time.
    struct Pipe(SyncSender<Vec<u8>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn buffered_lines_are_written_before_the_process_ends() {
        let (pipe, reader) = mpsc::sync_channel(1_000);
        let (mut lines, guard) = start_with(Pipe(pipe)).unwrap();
        for i in 0..100 {
            writeln!(lines, "line {i}").unwrap();
        }
        drop(guard);
        let text = String::from_utf8(reader.iter().flatten().collect()).unwrap();
        let expected: Vec<_> = (0..100).map(|i| format!("line {i}")).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_stalled_reader_blocks_neither_the_caller_nor_the_end_of_the_process() {
        let (pipe, reader) = mpsc::sync_channel(0);
        let (mut lines, guard) = start_with(Pipe(pipe)).unwrap();
        let line = [b'x'; 1 << 20];
        for _ in 0..20 {
            lines.write_all(&line).unwrap();
        }
        let (ended, end): (Sender<()>, _) = mpsc::channel();
        std::thread::spawn(move || {
            drop(guard);
            drop(ended);
        });
        // The reader has taken nothing, and the guard has given up.
        assert!(end.recv().is_err());
        let written: Vec<u8> = reader.iter().flatten().collect();
        let text = String::from_utf8_lossy(&written);
        let taken = text.matches('x').count() >> 20;
        let reports = text.split('x').filter_map(|report| report.split_once(" log lines dropped"));
        let dropped: usize = reports.map(|(count, _)| count.parse::<usize>().unwrap()).sum();
        assert!((8..20).contains(&taken), "{taken}");
        assert_eq!(taken + dropped, 20);
    }
}
