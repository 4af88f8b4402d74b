//! What the origin answers: steps, byte for byte, or an answer written in a line.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

/// One thing that the origin does with a connection, in order.
#[derive(Debug, Clone)]
pub enum Step {
    /// These bytes as they are.
    Send(Bytes),
    /// One chunk of a chunked body.
    Chunk(Bytes),
    /// That many times `x`.
    Fill(usize),
    /// These bytes in pieces of that size, with that much time between two.
    Drip(Bytes, usize, Duration),
    /// Waits until the gate of that name is open.
    Gate(String),
    /// Reads the request body here; without this step it is read before the first step.
    ReadBody,
    /// Sends back what comes until the peer ends.
    Echo,
    /// Closes the connection.
    Close,
    /// Closes it by RST.
    Reset,
    /// Keeps it open and is silent.
    Stop,
}

impl Step {
    /// [`Step::Send`] of anything.
    pub fn send(bytes: impl AsRef<[u8]>) -> Self {
        Self::Send(Bytes::copy_from_slice(bytes.as_ref()))
    }

    /// [`Step::Chunk`] of anything.
    pub fn chunk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Chunk(Bytes::copy_from_slice(bytes.as_ref()))
    }

    /// [`Step::Gate`] of that name.
    #[must_use]
    pub fn gate(name: &str) -> Self {
        Self::Gate(name.to_owned())
    }

    /// The end of a chunked body.
    #[must_use]
    pub const fn last_chunk() -> Self {
        Self::Send(Bytes::from_static(b"0\r\n\r\n"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Stated,
    Chunked,
    UntilClose,
}

/// A whole answer: raw steps, or status, fields and body of which head and framing are made.
#[derive(Debug, Clone)]
pub struct Reply {
    raw: Option<Arc<[Step]>>,
    before: Vec<Step>,
    status: u16,
    fields: Vec<(String, String)>,
    body: Bytes,
    length: Length,
    gate_at: Option<(usize, String)>,
    date_ago: Option<Duration>,
}

impl Reply {
    /// A 200 with Date (now), Content-Length and that body.
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::status(200, body)
    }

    /// The same with another status.
    pub fn status(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self {
            raw: None,
            before: Vec::new(),
            status,
            fields: Vec::new(),
            body: Bytes::copy_from_slice(body.as_ref()),
            length: Length::Stated,
            gate_at: None,
            date_ago: Some(Duration::ZERO),
        }
    }

    /// These bytes and nothing else.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self::steps(vec![Step::send(bytes)])
    }

    #[must_use]
    pub fn steps(steps: Vec<Step>) -> Self {
        Self {
            raw: Some(steps.into()),
            ..Self::ok("")
        }
    }

    /// One more field line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `Cache-Control: value`.
    #[must_use]
    pub fn cached(self, value: &str) -> Self {
        self.header("Cache-Control", value)
    }

    /// `Age: secs`: the answer was in another cache that long.
    #[must_use]
    pub fn age(self, secs: u64) -> Self {
        self.header("Age", &secs.to_string())
    }

    /// Date lies that far back.
    #[must_use]
    pub const fn date_ago(mut self, secs: u64) -> Self {
        self.date_ago = Some(Duration::from_secs(secs));
        self
    }

    #[must_use]
    pub const fn no_date(mut self) -> Self {
        self.date_ago = None;
        self
    }

    /// A chunked body, in chunks of at most 64 KiB.
    #[must_use]
    pub const fn chunked(mut self) -> Self {
        self.length = Length::Chunked;
        self
    }

    /// No length: the body ends with the connection.
    #[must_use]
    pub const fn until_close(mut self) -> Self {
        self.length = Length::UntilClose;
        self
    }

    /// Waits for a gate before the first byte.
    #[must_use]
    pub fn gate(mut self, name: &str) -> Self {
        self.before.push(Step::gate(name));
        self
    }

    /// Waits for a gate when that many bytes of the body are sent.
    #[must_use]
    pub fn gate_at(mut self, bytes: usize, name: &str) -> Self {
        self.gate_at = Some((bytes, name.to_owned()));
        self
    }

    /// An interim answer in front, e.g. `103 Early Hints`, with its field lines.
    #[must_use]
    pub fn interim(mut self, status_line: &str, fields: &str) -> Self {
        self.before
            .push(Step::send(format!("HTTP/1.1 {status_line}\r\n{fields}\r\n")));
        self
    }

    /// What is to be done for a request of that method.
    #[must_use]
    pub fn steps_for(&self, method: &str) -> Vec<Step> {
        if let Some(raw) = &self.raw {
            return raw.to_vec();
        }
        let mut steps = self.before.clone();
        steps.push(Step::send(self.head()));
        if method != "HEAD" && !matches!(self.status, 204 | 304) {
            let cut = self.gate_at.as_ref().map_or(0, |(at, _)| (*at).min(self.body.len()));
            self.push_body(&mut steps, &self.body.slice(..cut));
            if let Some((_, name)) = &self.gate_at {
                steps.push(Step::gate(name));
            }
            self.push_body(&mut steps, &self.body.slice(cut..));
            if self.length == Length::Chunked {
                steps.push(Step::last_chunk());
            }
        }
        if self.length == Length::UntilClose {
            steps.push(Step::Close);
        }
        steps
    }

    fn push_body(&self, steps: &mut Vec<Step>, body: &Bytes) {
        if self.length == Length::Chunked {
            steps.extend(body.chunks(64 << 10).map(Step::chunk));
        } else if !body.is_empty() {
            steps.push(Step::Send(body.clone()));
        }
    }

    fn head(&self) -> String {
        use std::fmt::Write;
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        if let Some(ago) = self.date_ago {
            let _ = write!(head, "Date: {}\r\n", http_date(SystemTime::now() - ago));
        }
        for (name, value) in &self.fields {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        match self.length {
            Length::Stated if self.status != 204 && self.status != 304 => {
                let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
            }
            Length::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
            Length::UntilClose => head.push_str("Connection: close\r\n"),
            Length::Stated => {}
        }
        head + "\r\n"
    }
}

/// An IMF-fixdate.
#[must_use]
pub fn http_date(at: SystemTime) -> String {
    httpdate::fmt_http_date(at)
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        404 => "Not Found",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}
