use std::time::Duration;

use super::*;

fn entry(action: &str) -> AuditEntry {
    AuditEntry {
        time: "2026-01-01T00:00:00Z".to_owned(),
        token: Some("admin".to_owned()),
        remote: Some("127.0.0.1:1".to_owned()),
        action: action.to_owned(),
        parameters: Value::Null,
        status: 200,
        code: None,
        suppressed: 0,
    }
}

#[test]
fn lines_survive_a_restart_and_a_line_cut_by_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let log = AuditLog::open(dir.path()).unwrap();
    log.record(entry("one"));
    log.record(entry("two"));
    drop(log);
    let path = dir.path().join("audit.log");
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"time\":\"2026");
    fs::write(&path, text).unwrap();

    let log = AuditLog::open(dir.path()).unwrap();
    log.record(entry("three"));
    let actions: Vec<_> = log.latest(10).into_iter().map(|entry| entry.action).collect();
    assert_eq!(actions, ["three", "two", "one"]);
    assert_eq!(log.latest(1).len(), 1);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert!(text.lines().last().unwrap().contains("\"three\""));
}

#[test]
fn a_line_and_what_is_kept_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let log = AuditLog::open(dir.path()).unwrap();
    let mut long = entry(&"ä\"".repeat(10_000));
    long.parameters = serde_json::json!({ "url": "\"\u{1}\\".repeat(20_000) });
    log.record(long);
    let text = fs::read_to_string(dir.path().join("audit.log")).unwrap();
    assert!(text.len() < 8192, "{}", text.len());
    serde_json::from_str::<AuditEntry>(text.trim()).unwrap();

    for _ in 0..KEPT_MAX + 5 {
        log.record(entry("x"));
    }
    assert_eq!(log.latest(usize::MAX).len(), KEPT_MAX);
}

#[test]
fn a_full_file_makes_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let log = AuditLog::open(dir.path()).unwrap();
    log.record(entry("old"));
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(FILE_BYTES_MAX - 1)
        .unwrap();
    log.record(entry("new"));
    assert!(fs::read_to_string(&path).unwrap().contains("new"));
    assert_eq!(
        fs::metadata(dir.path().join("audit.log.1")).unwrap().len(),
        FILE_BYTES_MAX - 1
    );
    assert_eq!(log.errors(), 0);
}

#[test]
fn a_line_that_cannot_be_written_is_counted_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let log = AuditLog::open(dir.path()).unwrap();
    log.state.lock().file = None;
    fs::remove_dir_all(dir.path()).unwrap();
    log.record(entry("lost"));
    assert_eq!((log.errors(), log.latest(1).len()), (1, 1));

    fs::create_dir(dir.path()).unwrap();
    log.record(entry("written"));
    assert_eq!(log.errors(), 1);
    assert!(
        fs::read_to_string(dir.path().join("audit.log"))
            .unwrap()
            .contains("written")
    );
}

#[test]
fn callers_without_a_token_cannot_flood_it() {
    let start = Instant::now();
    let mut allowance = Allowance {
        left: ANONYMOUS_BURST,
        refilled: start,
        suppressed: 0,
    };
    let written = (0..1000).filter(|_| allowance.take(start).is_some()).count();
    assert_eq!(written as u64, ANONYMOUS_BURST);
    assert_eq!(
        allowance.take(start + Duration::from_secs(1)),
        Some(1000 - ANONYMOUS_BURST)
    );
    assert_eq!(allowance.take(start + Duration::from_secs(1)), None);
}
