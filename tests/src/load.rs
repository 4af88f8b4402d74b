//! Many requests at once for the objects of a corpus, each answer judged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;

use crate::client::{Client, request};
use crate::corpus::Corpus;

/// An answer that was right.
#[derive(Debug, Clone)]
pub struct Answer {
    pub path: String,
    /// `X-Cache-Status`.
    pub cache: String,
    /// When its last byte was read.
    pub finished: Instant,
}

impl Answer {
    #[must_use]
    pub fn is_hit(&self) -> bool {
        self.cache == "HIT"
    }
}

/// Connections that ask for objects of a corpus.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    pub corpus: &'a Corpus,
    pub to: SocketAddr,
    pub host: &'a str,
    pub connections: usize,
    /// How often an answer that does not come, or breaks off, is asked for before it is missing.
    pub tries: usize,
}

/// Whether the end of the node ends the load or the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    UntilGone,
}

/// What its connections share.
struct Progress {
    next: AtomicUsize,
    answers: Mutex<Vec<Answer>>,
    wrong: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl<'a> Load<'a> {
    /// Four connections.
    #[must_use]
    pub const fn new(corpus: &'a Corpus, to: SocketAddr) -> Self {
        Self {
            corpus,
            to,
            host: "a.test",
            connections: 4,
            tries: 1,
        }
    }

    #[must_use]
    pub const fn host(mut self, host: &'a str) -> Self {
        self.host = host;
        self
    }

    #[must_use]
    pub const fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    #[must_use]
    pub const fn tries(mut self, tries: usize) -> Self {
        self.tries = tries;
        self
    }

    /// Asks for each of these once.
    ///
    /// # Panics
    /// Where an answer is missing or wrong.
    pub fn ask(&self, paths: &[String]) -> Vec<Answer> {
        self.run(Patience::None, &|n| paths.get(n).cloned())
    }

    /// Asks for each of these once, in that order as far as several connections have one, until there is no next one.
    ///
    /// # Panics
    /// Where an answer is missing or wrong.
    pub fn ask_each(&self, path: impl Fn(usize) -> Option<String> + Sync) -> Vec<Answer> {
        self.run(Patience::None, &path)
    }

    /// Asks for one after the other until the node is gone; what was answered until then.
    ///
    /// # Panics
    /// Where an answer is wrong.
    pub fn ask_until_gone(&self, path: impl Fn(usize) -> Option<String> + Sync) -> Vec<Answer> {
        self.run(Patience::UntilGone, &path)
    }

    fn run(&self, patience: Patience, path: &(dyn Fn(usize) -> Option<String> + Sync)) -> Vec<Answer> {
        let progress = Progress {
            next: AtomicUsize::new(0),
            answers: Mutex::default(),
            wrong: Mutex::default(),
            over: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            for _ in 0..self.connections {
                scope.spawn(|| self.work(patience, path, &progress));
            }
        });
        let wrong = progress.wrong.into_inner();
        assert!(wrong.is_empty(), "{} wrong answers: {:#?}", wrong.len(), wrong.first());
        progress.answers.into_inner()
    }

    fn work(&self, patience: Patience, path: &(dyn Fn(usize) -> Option<String> + Sync), progress: &Progress) {
        let mut connection = None;
        while !progress.over.load(Ordering::Relaxed)
            && let Some(path) = path(progress.next.fetch_add(1, Ordering::Relaxed))
        {
            let mut answer = self.one(&mut connection, &path);
            for _ in 1..self.tries {
                if matches!(answer, Err(Trouble::Gone(_))) {
                    answer = self.one(&mut connection, &path);
                }
            }
            match answer {
                Ok(answer) => progress.answers.lock().push(answer),
                Err(Trouble::Gone(_)) if patience == Patience::UntilGone => return,
                Err(Trouble::Gone(what) | Trouble::Wrong(what)) => {
                    progress.over.store(true, Ordering::Relaxed);
                    progress.wrong.lock().push(what);
                }
            }
        }
    }

    fn one(&self, connection: &mut Option<Client>, path: &str) -> Result<Answer, Trouble> {
        let gone = |what: &dyn std::fmt::Debug| Trouble::Gone(format!("{path}: {what:?}"));
        let mut client = match connection.take() {
            Some(client) => client,
            None => Client::try_connect(self.to).map_err(|e| gone(&e))?,
        };
        let oldest = self.corpus.version(path);
        client
            .try_send(request("GET", self.host, path, ""))
            .map_err(|e| gone(&e))?;
        let response = client.try_read_response("GET").map_err(|e| gone(&e))?;
        let finished = Instant::now();
        if !response.is_complete() {
            return Err(gone(&response.end));
        }
        self.corpus.judge(path, oldest, &response).map_err(Trouble::Wrong)?;
        let closes = response
            .header("connection")
            .is_some_and(|c| c.eq_ignore_ascii_case("close"));
        if !closes {
            *connection = Some(client);
        }
        Ok(Answer {
            path: path.to_owned(),
            cache: response.cache().to_owned(),
            finished,
        })
    }
}

enum Trouble {
    /// No whole answer came.
    Gone(String),
    Wrong(String),
}

/// `/group/0` and so on.
#[must_use]
pub fn paths(group: &str, n: usize) -> Vec<String> {
    (0..n).map(|n| format!("/{group}/{n}")).collect()
}
