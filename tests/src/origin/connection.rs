//! One connection to the origin: reads requests strictly, does the steps of their scripts.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::{LoggedRequest, Script, Shared, Step};
use crate::fields::{Fields, latin1};
use crate::message::{Broken, Framing, Reader, Source, Strictness, parse_request};

/// How long a gate or a silence lasts at most: longer than any test.
const LONGEST: Duration = Duration::from_secs(120);

impl Source for TcpStream {
    fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read(into)
    }
}

/// What comes after a reply.
#[derive(PartialEq, Eq)]
enum Next {
    Request,
    Close,
}

pub(super) fn serve(number: usize, socket: TcpStream, shared: &Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let mut connection = Connection {
        number,
        reader: Reader::new(socket),
        shared,
    };
    match connection.run() {
        Ok(()) | Err(Broken::Io(_)) => {}
        Err(Broken::Ended(n)) => connection.violation(&format!("the stream ended {n} bytes into something")),
        Err(Broken::Malformed(what)) => connection.violation(&what),
    }
    shared.update(|state| state.sockets.remove(&number));
}

struct Connection<'a> {
    number: usize,
    reader: Reader<TcpStream>,
    shared: &'a Arc<Shared>,
}

impl Connection<'_> {
    fn violation(&self, what: &str) {
        let line = format!("connection {}: {what}", self.number);
        self.shared.update(|state| state.violations.push(line));
    }

    fn run(&mut self) -> Result<(), Broken> {
        while let Some(head) = self.reader.head(Strictness::Exact)? {
            let parsed = match parse_request(&head, Strictness::Exact) {
                Ok(parsed) => parsed,
                Err(Broken::Malformed(what)) => {
                    return Err(Broken::Malformed(format!("{what} in {:?}", latin1(&head))));
                }
                Err(other) => return Err(other),
            };
            let request = LoggedRequest {
                connection: self.number,
                method: parsed.method,
                target: parsed.target,
                fields: parsed.fields,
                head,
                body: Vec::new(),
                trailers: Fields::default(),
                complete: parsed.framing == Framing::None,
            };
            let path = request.path().to_owned();
            let next = self.answer(request, parsed.framing);
            self.shared.update(|state| {
                if let Some((now, _)) = state.concurrency.get_mut(&path) {
                    *now = now.saturating_sub(1);
                }
            });
            if next? == Next::Close {
                break;
            }
        }
        Ok(())
    }

    fn answer(&mut self, mut request: LoggedRequest, framing: Framing) -> Result<Next, Broken> {
        let (index, script, n) = self.log(&request);
        let scripted = match &script {
            Some(Script::Sequence(replies)) => replies.get(n - 1).or_else(|| replies.last()),
            Some(Script::Dynamic(_)) | None => None,
        };
        let scripted = scripted.map(|reply| reply.steps_for(&request.method));
        // A dynamic reply is made from the whole request, so its body comes first.
        if !scripted.iter().flatten().any(|step| matches!(step, Step::ReadBody)) {
            self.read_body(index, &mut request, framing)?;
        }
        let steps = match (scripted, script) {
            (Some(steps), _) => steps,
            (None, Some(Script::Dynamic(make))) => make(&request, n),
            (None, _) => super::Reply::status(404, "no script").steps_for(&request.method),
        };
        for step in steps {
            if matches!(step, Step::ReadBody) {
                self.read_body(index, &mut request, framing)?;
            } else if self.act(step)? == Next::Close {
                return Ok(Next::Close);
            }
        }
        Ok(Next::Request)
    }

    /// Notes the request; gives its place in the log, its script and its number.
    fn log(&self, request: &LoggedRequest) -> (usize, Option<Script>, usize) {
        let path = request.path().to_owned();
        self.shared.update(|state| {
            if !state.forget {
                state.log.push(request.clone());
            }
            let (now, peak) = state.concurrency.entry(path.clone()).or_default();
            *now += 1;
            *peak = (*peak).max(*now);
            let key = [request.target.as_str(), &path, "*"]
                .into_iter()
                .find(|k| state.scripts.contains_key(*k));
            let script = key.and_then(|key| state.scripts.get_mut(key)).map(|(script, n)| {
                *n += 1;
                (script.clone(), *n)
            });
            let (script, n) = script.map_or((None, 1), |(script, n)| (Some(script), n));
            (state.log.len().saturating_sub(1), script, n)
        })
    }

    fn read_body(&mut self, index: usize, request: &mut LoggedRequest, framing: Framing) -> Result<(), Broken> {
        let body = &mut request.body;
        request.trailers = self
            .reader
            .body(framing, Strictness::Exact, |piece| body.extend_from_slice(piece))?;
        request.complete = true;
        self.shared.update(|state| {
            let same = |logged: &&mut LoggedRequest| logged.connection == request.connection;
            if let Some(logged) = state.log.get_mut(index).filter(same) {
                logged.body.clone_from(&request.body);
                logged.trailers = request.trailers.clone();
                logged.complete = true;
            }
        });
        Ok(())
    }

    fn act(&mut self, step: Step) -> Result<Next, Broken> {
        let shared = self.shared;
        let socket = &mut self.reader.source;
        match step {
            Step::Send(bytes) => socket.write_all(&bytes)?,
            Step::Chunk(data) => {
                let framed = [format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat();
                socket.write_all(&framed)?;
            }
            Step::Fill(n) => {
                let block = vec![b'x'; n.min(1 << 20)];
                let mut left = n;
                while left > 0 {
                    let here = left.min(block.len());
                    socket.write_all(block.get(..here).unwrap_or_default())?;
                    left -= here;
                }
            }
            Step::Drip(bytes, piece, every) => {
                for part in bytes.chunks(piece.max(1)) {
                    socket.write_all(part)?;
                    let end = Instant::now() + every;
                    while Instant::now() < end && !shared.wait(end - Instant::now(), |state| state.stopped) {}
                }
            }
            Step::Gate(name) => {
                shared.wait(LONGEST, |state| state.gates.contains(&name));
            }
            Step::Echo => return self.echo(),
            Step::Stop => {
                let mut rest = [0; 4096];
                while socket.read(&mut rest)? > 0 {}
                return Ok(Next::Close);
            }
            Step::Close => return self.close(),
            Step::Reset => {
                let _ = SockRef::from(&*socket).set_linger(Some(Duration::ZERO));
                // The copy that lets the origin close its connections would keep the socket alive.
                shared.update(|state| state.sockets.remove(&self.number));
                return Ok(Next::Close);
            }
            Step::ReadBody => {}
        }
        Ok(Next::Request)
    }

    /// Closing with unread bytes would be a RST that takes what was sent with it: end the sending side, read the rest.
    fn close(&mut self) -> Result<Next, Broken> {
        let socket = &mut self.reader.source;
        socket.shutdown(std::net::Shutdown::Write)?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        let mut rest = [0; 4096];
        while matches!(socket.read(&mut rest), Ok(n) if n > 0) {}
        Ok(Next::Close)
    }

    fn echo(&mut self) -> Result<Next, Broken> {
        let early = self.reader.rest().to_vec();
        let socket = &mut self.reader.source;
        socket.write_all(&early)?;
        let mut piece = vec![0; 64 << 10];
        loop {
            let n = socket.read(&mut piece)?;
            if n == 0 {
                return Ok(Next::Close);
            }
            socket.write_all(piece.get(..n).unwrap_or_default())?;
        }
    }
}
