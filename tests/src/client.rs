//! A raw client: sends any bytes, reads answers strictly, and knows how each of them ended.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};

use crate::fields::Fields;
use crate::message::{Broken, Framing, Reader, Source, Strictness, framing, parse_head};
use crate::wait::DEADLINE;

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As its framing says.
    Complete,
    /// The connection was closed before.
    Truncated,
    /// The connection was reset before.
    Reset,
    /// Its bytes made no sense.
    Malformed(String),
}

/// An interim answer (1xx).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interim {
    pub status: u16,
    pub fields: Fields,
}

/// A final answer and what came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub version: String,
    pub status: u16,
    pub reason: String,
    pub fields: Fields,
    pub body: Vec<u8>,
    pub trailers: Fields,
    pub interim: Vec<Interim>,
    pub end: End,
}

impl Response {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    /// `X-Cache-Status`, or nothing.
    #[must_use]
    pub fn cache(&self) -> &str {
        self.header("X-Cache-Status").unwrap_or_default()
    }

    #[must_use]
    pub fn is_hit(&self) -> bool {
        self.cache() == "HIT"
    }

    #[must_use]
    pub fn age(&self) -> Option<u64> {
        self.header("Age").and_then(|age| age.parse().ok())
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end == End::Complete
    }

    /// Asserts status and body of a whole answer, and gives it back.
    ///
    /// # Panics
    /// Where they are others.
    #[must_use]
    pub fn expect(self, status: u16, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let seen = String::from_utf8_lossy(self.body.get(..self.body.len().min(200)).unwrap_or_default());
        assert!(
            self.status == status && self.body == body && self.is_complete(),
            "wanted {status} with {} bytes, got {} with {} bytes, {:?}: {seen:?}\n{:#?}",
            body.len(),
            self.status,
            self.body.len(),
            self.end,
            self.fields
        );
        self
    }
}

/// Why no answer could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The connection was closed before a byte of it.
    Closed,
    Reset,
    TimedOut,
    /// The head was broken off or no head.
    Malformed(String),
}

/// A connection to whoever is to be tested.
#[derive(Debug)]
pub struct Client {
    reader: Reader<Timed>,
    peer: SocketAddr,
}

/// A socket whose reads end at a deadline that is set anew for each answer.
#[derive(Debug)]
struct Timed {
    socket: TcpStream,
    patience: Duration,
    end: Instant,
}

impl Source for Timed {
    fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.read(into)
    }
}

impl Client {
    /// # Panics
    /// Where the connection is refused.
    #[must_use]
    pub fn connect(to: SocketAddr) -> Self {
        Self::try_connect(to).unwrap_or_else(|e| panic!("connect to {to}: {e}"))
    }

    /// # Errors
    /// Where the connection is refused or takes longer than the deadline.
    pub fn try_connect(to: SocketAddr) -> io::Result<Self> {
        TcpStream::connect_timeout(&to, DEADLINE).and_then(Self::over)
    }

    /// Connects from one of the loopback addresses, to have more ports or to be another client.
    ///
    /// # Errors
    /// Where the connection is refused or no port is left.
    pub fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect_timeout(&to.into(), DEADLINE)?;
        Self::over(socket.into())
    }

    fn over(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(DEADLINE))?;
        Ok(Self {
            peer: socket.peer_addr()?,
            reader: Reader::new(Timed {
                socket,
                patience: DEADLINE,
                end: Instant::now(),
            }),
        })
    }

    /// Waits that long for each answer, instead of [`DEADLINE`].
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.reader.source.patience = patience;
        self
    }

    /// A small receive window, for a client that is slow to read. Works best before anything was received.
    pub fn shrink_window(&self) {
        let _ = SockRef::from(&self.reader.source.socket).set_recv_buffer_size(4096);
    }

    /// Whom it is connected to.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Another hand on the sending side, to send while answers are read.
    ///
    /// # Panics
    /// Where the process has no file descriptor left.
    #[must_use]
    pub fn writer(&self) -> TcpStream {
        self.reader.source.socket.try_clone().expect("a socket can be shared")
    }

    /// # Panics
    /// Where the peer does not take it.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.try_send(bytes).expect("the peer takes what is sent");
        self
    }

    /// # Errors
    /// Where the peer does not take it.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.source.socket.write_all(bytes.as_ref())
    }

    /// Sends `GET path` for `host` and reads the answer.
    pub fn get(&mut self, host: &str, path: &str) -> Response {
        self.send(request("GET", host, path, "")).read_response()
    }

    /// The answer to anything but HEAD.
    ///
    /// # Panics
    /// Where none comes.
    pub fn read_response(&mut self) -> Response {
        self.try_read_response("GET")
            .unwrap_or_else(|e| panic!("no answer: {e:?}"))
    }

    /// The answer to a request of that method.
    ///
    /// # Panics
    /// Where none comes.
    pub fn read_response_to(&mut self, method: &str) -> Response {
        self.try_read_response(method)
            .unwrap_or_else(|e| panic!("no answer to {method}: {e:?}"))
    }

    /// # Errors
    /// Where no head comes, or a broken one.
    pub fn try_read_response(&mut self, method: &str) -> Result<Response, ReadError> {
        let mut body = Vec::new();
        let mut response = self.read_streaming(method, |piece| body.extend_from_slice(piece))?;
        response.body = body;
        Ok(response)
    }

    /// The same with the body handed out piece by piece instead of kept.
    ///
    /// # Errors
    /// Where no head comes, or a broken one.
    pub fn read_streaming(&mut self, method: &str, each: impl FnMut(&[u8])) -> Result<Response, ReadError> {
        let mut response = self.read_head(method)?;
        let framing = body_framing(method, &response).map_err(ReadError::Malformed)?;
        match self.reader.body(framing, Strictness::Exact, each) {
            Ok(trailers) => response.trailers = trailers,
            Err(Broken::Ended(_)) => response.end = End::Truncated,
            Err(Broken::Malformed(what)) => response.end = End::Malformed(what),
            Err(Broken::Io(e)) if is_timeout(&e) => return Err(ReadError::TimedOut),
            Err(Broken::Io(_)) => response.end = End::Reset,
        }
        Ok(response)
    }

    /// Interim answers and the head of the final one; its body is still to be read, raw.
    ///
    /// # Errors
    /// Where no head comes, or a broken one.
    pub fn read_head(&mut self, method: &str) -> Result<Response, ReadError> {
        self.restart_clock();
        let mut interim = Vec::new();
        loop {
            let head = match self.reader.head(Strictness::Exact) {
                Ok(Some(head)) => head,
                Ok(None) => return Err(ReadError::Closed),
                Err(e) => return Err(read_error(e)),
            };
            let (line, fields) = parse_head(&head).map_err(read_error)?;
            let (version, status, reason) = status_line(&line).map_err(ReadError::Malformed)?;
            let switched = status == 101 || (method == "CONNECT" && status == 200);
            if (100..200).contains(&status) && !switched {
                interim.push(Interim { status, fields });
                continue;
            }
            return Ok(Response {
                version,
                status,
                reason,
                fields,
                body: Vec::new(),
                trailers: Fields::default(),
                interim,
                end: End::Complete,
            });
        }
    }

    /// Exactly `n` bytes, raw.
    ///
    /// # Panics
    /// Where they do not come.
    pub fn read_bytes(&mut self, n: usize) -> Vec<u8> {
        self.restart_clock();
        let mut bytes = Vec::new();
        let read = self.reader.body(Framing::Length(n as u64), Strictness::Exact, |piece| {
            bytes.extend_from_slice(piece)
        });
        read.unwrap_or_else(|e| panic!("wanted {n} bytes, got {}: {e:?}", bytes.len()));
        bytes
    }

    /// Everything until the peer closes.
    ///
    /// # Panics
    /// Where it keeps the connection open past the deadline.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        self.restart_clock();
        let mut bytes = Vec::new();
        match self.reader.body(Framing::Close, Strictness::Exact, |piece| {
            bytes.extend_from_slice(piece)
        }) {
            Err(Broken::Io(e)) if is_timeout(&e) => panic!("still open after {} bytes", bytes.len()),
            _ => bytes,
        }
    }

    /// Every answer until the peer closes.
    ///
    /// # Panics
    /// Where it keeps the connection open, or sends what is no answer.
    pub fn read_all(&mut self) -> Vec<Response> {
        let mut found = Vec::new();
        loop {
            match self.try_read_response("GET") {
                Ok(response) => found.push(response),
                Err(ReadError::Closed | ReadError::Reset) => return found,
                Err(e) => panic!("after {} answers: {e:?}", found.len()),
            }
        }
    }

    /// Whether the peer closes the connection, with nothing more sent, before the patience ends.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.try_read_response("GET"), Err(ReadError::Closed | ReadError::Reset))
    }

    /// Ends the sending side; answers can still be read.
    pub fn half_close(&mut self) {
        let _ = self.reader.source.socket.shutdown(Shutdown::Write);
    }

    /// Ends the connection by RST.
    pub fn abort(self) {
        let _ = SockRef::from(&self.reader.source.socket).set_linger(Some(Duration::ZERO));
    }

    fn restart_clock(&mut self) {
        let source = &mut self.reader.source;
        source.end = Instant::now() + source.patience;
    }
}

/// A request without a body; `fields` are whole lines with their ends.
#[must_use]
pub fn request(method: &str, host: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
}

/// One GET over a connection of its own.
#[must_use]
pub fn get(to: SocketAddr, host: &str, path: &str) -> Response {
    Client::connect(to).get(host, path)
}

/// One request over a connection of its own; `fields` are whole lines with their ends.
#[must_use]
pub fn fetch(to: SocketAddr, method: &str, host: &str, path: &str, fields: &str) -> Response {
    Client::connect(to)
        .send(request(method, host, path, fields))
        .read_response_to(method)
}

/// Raw bytes over a connection of its own; what comes back until the peer closes.
#[must_use]
pub fn raw(to: SocketAddr, bytes: impl AsRef<[u8]>) -> Vec<Response> {
    let mut client = Client::connect(to);
    // A peer that refuses early may reset while the rest is on its way.
    let _ = client.try_send(bytes);
    client.read_all()
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn read_error(broken: Broken) -> ReadError {
    match broken {
        Broken::Ended(n) => ReadError::Malformed(format!("closed {n} bytes into a head")),
        Broken::Malformed(what) => ReadError::Malformed(what),
        Broken::Io(e) if is_timeout(&e) => ReadError::TimedOut,
        Broken::Io(_) => ReadError::Reset,
    }
}

/// RFC 9112 section 4.
fn status_line(line: &str) -> Result<(String, u16, String), String> {
    let mut parts = line.splitn(3, ' ');
    let (version, status) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let digits = status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit());
    match (parts.next(), status.parse()) {
        (Some(reason), Ok(code)) if version == "HTTP/1.1" && digits => {
            Ok((version.to_owned(), code, reason.to_owned()))
        }
        _ => Err(format!("status line {line:?}")),
    }
}

/// RFC 9112 section 6.3.
fn body_framing(method: &str, response: &Response) -> Result<Framing, String> {
    let stated = match framing(&response.fields) {
        Ok(stated) => stated,
        Err(Broken::Malformed(what)) => return Err(what),
        Err(e) => return Err(format!("{e:?}")),
    };
    if matches!(response.status, 100..=199 | 204) && stated.is_some() {
        return Err(format!("{} with a body framing", response.status));
    }
    if method == "HEAD" || matches!(response.status, 100..=199 | 204 | 304) {
        return Ok(Framing::None);
    }
    if stated.is_none()
        && response
            .header("connection")
            .is_none_or(|c| !c.eq_ignore_ascii_case("close"))
    {
        return Err("a body without an end, on a connection that stays open".to_owned());
    }
    Ok(stated.unwrap_or(Framing::Close))
}

#[cfg(test)]
mod tests;
