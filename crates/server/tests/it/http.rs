//! A small HTTP client, which can also say what a well-behaved one never would.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        Self { method, path, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A message to be sent, as JSON.
    pub(crate) fn send_sms(key: &str, body: impl Into<Vec<u8>>) -> Self {
        let request = Self::new("POST", "/v1/send/sms").key(key);
        request.header("Content-Type", "application/json").body(body)
    }

    /// The same request to another address.
    pub(crate) fn to(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Authorization", format!("Bearer {key}"))
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// As it goes over the wire, up to the body.
    fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: test\r\n", self.method, self.path);
        if !self.body.is_empty() || self.method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let mut head = head.into_bytes();
        for (name, value) in &self.headers {
            head.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        head
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All headers of a name in lower case.
    #[allow(dead_code, reason = "only one of the two test binaries keeps cookies")]
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {} {}", self.status, self.text()))
    }
}

/// A connection that is kept from one request to the next.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        stream.set_write_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        // An answer may come, and the connection end, before all of a body was taken.
        let said = self.say(&[request.head(), request.body.clone()].concat());
        self.read(request.method != "HEAD").map_err(|e| said.err().unwrap_or(e))
    }

    /// Says all but the last `kept` bytes of the body, and gives those back.
    pub(crate) fn begin(&mut self, request: &Request, kept: usize) -> io::Result<Vec<u8>> {
        let whole = [request.head(), request.body.clone()].concat();
        let (first, rest) = whole.split_at(whole.len() - kept);
        self.say(first)?;
        Ok(rest.to_vec())
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Reads the next answer.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        self.read(true)
    }

    /// Reads an answer, and its body if it has one.
    fn read(&mut self, with_body: bool) -> io::Result<Answer> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").filter(|_| with_body);
        let length = length.and_then(|v| v.parse().ok()).unwrap_or(0);
        answer.body = vec![0; length];
        self.0.read_exact(&mut answer.body)?;
        if with_body && answer.header("transfer-encoding") == Some("chunked") {
            answer.body = self.chunks()?;
        }
        Ok(answer)
    }

    /// A body that came piece by piece.
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            let begin = body.len();
            body.resize(begin + size, 0);
            self.0.read_exact(&mut body[begin..])?;
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// One line of a head, without its end; empty at the end of the head.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// One request over a connection of its own.
pub(crate) fn ask(address: SocketAddr, request: &Request) -> io::Result<Answer> {
    Connection::open(address)?.ask(request)
}
