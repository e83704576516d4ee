//! A small HTTP client, which can also send invalid requests.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A request.
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

    /// A request to send a message.
    pub(crate) fn send_sms(key: &str, body: impl Into<Vec<u8>>) -> Self {
        let request = Self::new("POST", "/v1/send/sms").key(key);
        request.header("Content-Type", "application/json").body(body)
    }

    /// Changes the path.
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

    /// Returns request line and headers as bytes.
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

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    /// Returns a header by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Returns all headers with a lower-case name.
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

/// A persistent connection.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        stream.set_write_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<HttpResponse> {
        // A response may arrive, and the connection may close, before the whole body is sent.
        let sent = self.write(&[request.head(), request.body.clone()].concat());
        self.read(request.method != "HEAD").map_err(|e| sent.err().unwrap_or(e))
    }

    /// Sends a request without the last `kept` bytes of the body, and returns these.
    pub(crate) fn begin(&mut self, request: &Request, kept: usize) -> io::Result<Vec<u8>> {
        let whole = [request.head(), request.body.clone()].concat();
        let (first, rest) = whole.split_at(whole.len() - kept);
        self.write(first)?;
        Ok(rest.to_vec())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Reads the next response.
    pub(crate) fn response(&mut self) -> io::Result<HttpResponse> {
        self.read(true)
    }

    /// Reads a response, with its body if it has one.
    fn read(&mut self, with_body: bool) -> io::Result<HttpResponse> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = HttpResponse { status, headers, body: Vec::new() };
        let length = response.header("content-length").filter(|_| with_body);
        let length = length.and_then(|v| v.parse().ok()).unwrap_or(0);
        response.body = vec![0; length];
        self.0.read_exact(&mut response.body)?;
        if with_body && response.header("transfer-encoding") == Some("chunked") {
            response.body = self.chunks()?;
        }
        Ok(response)
    }

    /// Reads a chunked body.
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

    /// Reads a line of a head, which is empty at its end.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// Sends one request over a new connection.
pub(crate) fn ask(address: SocketAddr, request: &Request) -> io::Result<HttpResponse> {
    Connection::open(address)?.ask(request)
}
