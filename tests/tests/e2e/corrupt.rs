//! A disk whose files were damaged between two runs: the start never fails, no answer is wrong, what is whole is still used.

use std::fs;
use std::path::{Path, PathBuf};

use larder_tests::node::disks::{Disk, copy_directory, files_below};
use larder_tests::{Corpus, Load, Origin, Random, Sizes, TestNode, full};
use tempfile::TempDir;

/// What is done to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// One bit of the byte at this place becomes another.
    Flip(usize),
    Cut(usize),
    /// 512 bytes from here on become zeros.
    Blank(usize),
    /// A block is written again at the end.
    Repeat(usize),
    Remove,
}

impl Damage {
    fn any(random: &mut Random, length: usize) -> Self {
        let at = random.below(length.max(1));
        match random.below(9) {
            0..=2 => Self::Flip(at),
            // Where headers are.
            3 => Self::Flip(at % 64),
            4 | 5 => Self::Cut(at / 512 * 512),
            6 => Self::Blank(at / 512 * 512),
            7 => Self::Repeat(at / 512 * 512),
            _ => Self::Remove,
        }
    }

    fn to(self, path: &Path) {
        let mut bytes = fs::read(path).expect("the file is there");
        match self {
            Self::Flip(at) => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 0x10;
                }
            }
            Self::Cut(at) => bytes.truncate(at),
            Self::Blank(at) => bytes.iter_mut().skip(at).take(512).for_each(|byte| *byte = 0),
            Self::Repeat(at) => bytes.extend(bytes.iter().skip(at).take(4096).copied().collect::<Vec<_>>()),
            Self::Remove => return fs::remove_file(path).expect("the file is removed"),
        }
        fs::write(path, bytes).expect("the file is written");
    }
}

/// A node with some objects of all sizes on its disk, and copies of that disk as it was after a stop and after a kill.
struct Patient {
    node: TestNode,
    _origin: Origin,
    corpus: Corpus,
    paths: Vec<String>,
    copies: TempDir,
}

/// How the last run ended.
const ENDS: [&str; 2] = ["stopped", "killed"];

impl Patient {
    fn new() -> Self {
        let origin = Origin::start();
        let corpus = Corpus::new(Sizes::Mixed);
        corpus.serve_from(&origin);
        let mut node = TestNode::builder()
            .origin(&origin)
            .memory("max_size = \"0\"")
            .disk("64MiB")
            .start();
        // Some in body files: nothing above a megabyte is in a segment of a disk of this size.
        let large = (0..)
            .map(|n| format!("/large/{n}"))
            .filter(|path| corpus.size(path) > 4 << 20);
        let mut paths: Vec<_> = large.take(2).collect();
        paths.extend((0..60).map(|n| format!("/o/{n}")));
        let copies = TempDir::new().expect("a temporary directory");
        let _ = Load::new(&corpus, node.data).ask(&paths);
        node.wait_written();
        assert_eq!(node.stop().code(), Some(0));
        copy_directory(&node.disk_path(0), &copies.path().join(ENDS[0]));
        node.start_again();
        let more: Vec<_> = (60..80).map(|n| format!("/o/{n}")).collect();
        let _ = Load::new(&corpus, node.data).ask(&more);
        node.wait_written();
        node.kill();
        copy_directory(&node.disk_path(0), &copies.path().join(ENDS[1]));
        Self {
            node,
            _origin: origin,
            corpus,
            paths,
            copies,
        }
    }

    /// The disk as it was.
    fn restore(&self, end: &str) -> PathBuf {
        let disk = self.node.disk_path(0);
        let _ = fs::remove_dir_all(&disk);
        copy_directory(&self.copies.path().join(end), &disk);
        disk
    }

    /// Starts, asks for everything twice, and ends; those that the origin was asked for.
    fn run(&mut self, what: &str) -> Vec<String> {
        self.node.start_again();
        let before: Vec<_> = self.paths.iter().map(|path| self.corpus.asked(path)).collect();
        // Where nothing but segments is left, it has to read them first.
        let _ = self.node.wait_disk(0, "to be warm", Disk::is_warm);
        // What is found to be damaged when half of it is sent breaks off, and is right when it is asked for again.
        let load = Load::new(&self.corpus, self.node.data).tries(2);
        let _ = load.ask(&self.paths);
        self.node.wait_written();
        let again = load.ask(&self.paths);
        let missed: Vec<_> = self
            .paths
            .iter()
            .zip(before)
            .filter(|(path, before)| self.corpus.asked(path) != *before)
            .map(|(path, _)| path.clone())
            .collect();
        let hits = again.iter().filter(|answer| answer.is_hit()).count();
        assert!(
            hits + 2 >= again.len(),
            "{what}: {hits} of {} are hits again",
            again.len()
        );
        self.node.kill();
        missed
    }
}

/// A file of each kind below a disk's path.
fn one_of_each(disk: &Path) -> Vec<PathBuf> {
    let mut kinds = Vec::new();
    let mut found: Vec<PathBuf> = Vec::new();
    for path in files_below(disk) {
        let below = path.strip_prefix(disk).expect("it is below");
        let kind = match below.parent() {
            Some(parent) if parent.starts_with("segments") || parent.starts_with("bodies") => parent.to_owned(),
            _ => below.to_owned(),
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
            found.push(path);
        }
    }
    found
}

#[test]
fn b88_nothing_but_segments_is_needed() {
    let mut patient = Patient::new();
    for end in ENDS {
        for lost in [&["index"][..], &["snapshot"], &["index", "snapshot"]] {
            let disk = patient.restore(end);
            for name in lost {
                let path = disk.join(name);
                let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
                assert!(!path.exists());
            }
            let missed = patient.run(&format!("{end} without {lost:?}"));
            assert_eq!(missed, Vec::<String>::new(), "{end} without {lost:?}");
        }
    }
}

#[test]
fn b88_a_damaged_index_costs_nothing() {
    let mut random = Random::seeded("b88 index");
    let mut patient = Patient::new();
    for end in ENDS {
        let disk = patient.restore(end);
        let files = one_of_each(&disk);
        let files = files.iter().filter(|path| {
            let below = path.strip_prefix(&disk).expect("it is below");
            below.starts_with("index") || below.starts_with("snapshot")
        });
        for path in files {
            patient.restore(end);
            let length = fs::metadata(path).expect("the file is there").len();
            let damage = Damage::any(&mut random, usize::try_from(length).expect("it is small"));
            damage.to(path);
            let what = format!("{end}, {damage:?} of {}", path.display());
            assert_eq!(patient.run(&what), Vec::<String>::new(), "{what}");
        }
    }
}

#[test]
fn b88_damaged_objects_are_never_served() {
    let mut random = Random::seeded("b88 objects");
    let mut patient = Patient::new();
    for round in 0..if full() { 300 } else { 8 } {
        let end = ENDS[round % 2];
        let disk = patient.restore(end);
        let files: Vec<_> = files_below(&disk)
            .into_iter()
            .filter(|path| full() || path.extension().is_some_and(|kind| kind == "seg" || kind == "body"))
            .collect();
        let path = &files[random.below(files.len())];
        let length = fs::metadata(path).expect("the file is there").len();
        let length = usize::try_from(length).expect("it is small");
        let damage = Damage::any(&mut random, length);
        let what = format!("{end}, {damage:?} of {} with {length} bytes", path.display());
        damage.to(path);
        // With the index, or from the segments alone.
        if random.below(2) == 0 {
            let _ = fs::remove_dir_all(disk.join("index"));
            let _ = fs::remove_file(disk.join("snapshot"));
        }
        let missed = patient.run(&what);
        let small =
            matches!(damage, Damage::Flip(at) if at >= 64) && path.extension().is_some_and(|kind| kind == "seg");
        assert!(!small || missed.len() <= 2, "{what} lost {missed:?}");
    }
}

#[test]
fn b88_every_kind_of_file_may_be_missing() {
    let mut patient = Patient::new();
    for (n, path) in one_of_each(&patient.restore(ENDS[0])).into_iter().enumerate() {
        patient.restore(ENDS[0]);
        let damage = if n % 2 == 0 { Damage::Remove } else { Damage::Cut(0) };
        damage.to(&path);
        let _ = patient.run(&format!("{damage:?} of {}", path.display()));
    }
    for directory in ["segments", "bodies"] {
        let disk = patient.restore(ENDS[1]);
        fs::remove_dir_all(disk.join(directory)).expect("the directory is there");
        let _ = patient.run(&format!("no {directory}"));
    }
}

#[test]
fn another_version_is_a_clean_start() {
    let mut patient = Patient::new();
    for end in ENDS {
        let disk = patient.restore(end);
        let segments = files_below(&disk.join("segments"));
        let first = segments.first().expect("there are segments");
        // The version is behind the eight bytes that say what the file is.
        let mut bytes = fs::read(first).expect("the segment is read");
        bytes[8] = bytes[8].wrapping_add(1);
        fs::write(first, bytes).expect("the segment is written");
        patient.node.start_again();
        let paths = patient.paths.clone();
        let answers = Load::new(&patient.corpus, patient.node.data).ask(&paths);
        assert!(
            answers.iter().all(|answer| answer.cache == "MISS"),
            "{end}: something is left"
        );
        let told = patient.node.process().output();
        assert!(told.contains("of another version"), "{end}: {told}");
        patient.node.wait_written();
        let again = Load::new(&patient.corpus, patient.node.data).ask(&paths);
        assert!(
            again.iter().all(larder_tests::Answer::is_hit),
            "{end}: it does not work"
        );
        patient.node.kill();
    }
}
