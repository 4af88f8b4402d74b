//! Far more than both tiers hold goes through them: memory and disk keep their bounds at every moment, and no answer is wrong.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use larder_tests::node::disks::allocated;
use larder_tests::{Corpus, Load, Origin, Sizes, TestNode, full};

const MIB: u64 = 1 << 20;

/// How much goes through what.
struct Form {
    memory: u64,
    disk: u64,
    through: u64,
    /// What the disk may use beyond its size for a moment.
    beyond: u64,
}

/// What the process may have beyond its memory tier.
const RESIDENT_BEYOND: u64 = 96 * MIB;

/// Between two looks at what is used.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(20);

#[test]
fn b93_both_tiers_keep_their_bounds() {
    let form = if full() {
        Form {
            memory: 64 * MIB,
            disk: 256 * MIB,
            through: 2048 * MIB,
            beyond: 64 * MIB,
        }
    } else {
        Form {
            memory: 8 * MIB,
            disk: 32 * MIB,
            through: 160 * MIB,
            beyond: 8 * MIB,
        }
    };
    let origin = Origin::start();
    let corpus = Corpus::new(Sizes::Mixed);
    corpus.serve_from(&origin);
    let node = TestNode::builder()
        .origin(&origin)
        .memory(&format!("max_size = \"{}MiB\"", form.memory / MIB))
        .disk(&format!("{}MiB", form.disk / MIB))
        .start();
    let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let path = node.disk_path(0);
    let (resident, used, samples) = thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let (mut resident, mut used, mut samples) = (0, 0, 0);
            while !over.load(Ordering::Relaxed) {
                resident = node.rss_kib().max(resident);
                used = allocated(&path).max(used);
                samples += 1;
                thread::park_timeout(BETWEEN_SAMPLES);
            }
            (resident << 10, used, samples)
        });
        let _ = Load::new(&corpus, node.data).ask_each(|n| {
            let path = format!("/through/{n}");
            let before = sent.fetch_add(corpus.size(&path) as u64, Ordering::Relaxed);
            (before < form.through).then_some(path)
        });
        over.store(true, Ordering::Relaxed);
        sampler.join().expect("the sampler ends")
    });
    let disk = node.disk(0);
    eprintln!("{samples} samples: {resident} bytes resident, {used} bytes on disk");
    assert!(
        resident <= form.memory + RESIDENT_BEYOND,
        "{resident} bytes resident; {disk:#?}"
    );
    assert!(used <= form.disk + form.beyond, "{used} bytes on disk; {disk:#?}");
    assert!(disk.figure("used") <= form.disk, "{disk:#?}");
    assert!(disk.figure("evicted") > 0 && disk.is_up(), "{disk:#?}");
}
