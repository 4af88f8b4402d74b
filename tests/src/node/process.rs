//! A child process whose output is kept, that can be waited for with a deadline, and that ends with its owner.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_for;

/// Lines of both streams in the order in which they came.
#[derive(Default)]
struct Output {
    lines: Mutex<Vec<String>>,
    grown: Condvar,
}

impl Output {
    fn collect(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        let output = Arc::clone(self);
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                output.lines.lock().push(String::from_utf8_lossy(&line).into_owned());
                output.grown.notify_all();
            }
        });
    }
}

/// A run of the binary.
pub struct Process {
    child: Child,
    output: Arc<Output>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("pid", &self.child.id())
            .finish_non_exhaustive()
    }
}

/// The binary: `LARDER_BIN`, or the one that Cargo put beside the tests.
///
/// # Panics
/// Where there is none.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("LARDER_BIN") {
        return path.into();
    }
    let here = std::env::current_exe().expect("a test has a path");
    let found = here
        .ancestors()
        .skip(1)
        .take(3)
        .map(|dir| dir.join("larder"))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "no binary near {}: `cargo build` first, or set LARDER_BIN",
            here.display()
        )
    })
}

impl Process {
    /// Starts the binary, with no token in its environment.
    #[must_use]
    pub fn start(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        Self::start_with(arguments, None)
    }

    /// Starts the binary with an admin token in its environment, or none.
    ///
    /// # Panics
    /// Where it can't be started.
    #[must_use]
    pub fn start_with(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, token: Option<&str>) -> Self {
        let mut child = Command::new(binary())
            .args(arguments)
            .env_remove("LARDER_ADMIN_TOKEN")
            .envs(token.map(|token| ("LARDER_ADMIN_TOKEN", token)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let output = Arc::new(Output::default());
        output.collect(child.stdout.take().expect("stdout is piped"));
        output.collect(child.stderr.take().expect("stderr is piped"));
        Self { child, output }
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All it printed, stdout and stderr mixed.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.lines.lock().join("\n")
    }

    /// The first line, from the `skip`th on, for which `pick` gives something.
    ///
    /// # Panics
    /// When the deadline passes first, or the process ends without such a line.
    pub fn wait_line<T>(&mut self, what: &str, deadline: Duration, skip: usize, pick: impl Fn(&str) -> Option<T>) -> T {
        let end = Instant::now() + deadline;
        loop {
            // Looked at before the lines, so that the last words of a process that ended are seen.
            let ended = self.child.try_wait().expect("a child can be waited for");
            let mut lines = self.output.lines.lock();
            if let Some(found) = lines.iter().skip(skip).find_map(|line| pick(line)) {
                return found;
            }
            let look_again = (Instant::now() + Duration::from_millis(50)).min(end);
            let timed_out = self.output.grown.wait_until(&mut lines, look_again).timed_out();
            let over = ended.is_some() && timed_out;
            assert!(
                !over && Instant::now() < end,
                "no {what}; ended: {ended:?}; output:\n{}",
                lines.join("\n")
            );
        }
    }

    /// How many lines it printed.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.output.lines.lock().len()
    }

    /// # Panics
    /// Where the process is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a pid");
        kill_process(pid, signal).expect("the process is there");
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When the deadline passes first.
    pub fn wait(&mut self, deadline: Duration) -> ExitStatus {
        wait_for("the process to end", deadline, || {
            self.child.try_wait().expect("a child can be waited for")
        })
    }

    #[must_use]
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- output of the node:\n{}\n---", self.output());
        }
    }
}

/// Runs the binary to its end; exit code and output.
#[must_use]
pub fn run(arguments: &[&str], deadline: Duration) -> (Option<i32>, String) {
    run_with(arguments, None, deadline)
}

/// The same with an admin token in its environment.
///
/// # Panics
/// Where it runs longer than the deadline.
#[must_use]
pub fn run_with(arguments: &[&str], token: Option<&str>, deadline: Duration) -> (Option<i32>, String) {
    let mut process = Process::start_with(arguments, token);
    let status = process.wait(deadline);
    // The pipes are read by threads of their own, which end with the pipes and with them their share in the output.
    wait_for("the end of the output", deadline, || {
        (Arc::strong_count(&process.output) == 1).then_some(())
    });
    (status.code(), process.output())
}
