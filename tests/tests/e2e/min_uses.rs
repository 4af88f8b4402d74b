//! `min_uses`: what is asked for once or twice only is not worth a place.

use larder_tests::{Origin, Reply, TestNode};

#[test]
fn the_answer_to_the_third_request_is_stored() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("x").cached("max-age=60")]);
    let node = TestNode::builder()
        .origin(&origin)
        .rule("match = { path = \"/rare/**\" }\nmin_uses = 3")
        .disk("64MiB")
        .start();
    let ask = |path| {
        let answer = node.get("a.test", path).expect(200, "x");
        (
            answer.cache().to_owned(),
            answer.header("cache-status").unwrap_or_default().to_owned(),
        )
    };
    let answers = ["SCARCE", "SCARCE", "MISS", "HIT"].map(|want| (want, ask("/rare/1")));
    for (want, (status, _)) in &answers {
        assert_eq!(status, want, "{answers:?}");
    }
    assert!(answers[0].1.1.ends_with("stored=?0; detail=min-uses"), "{answers:?}");
    assert_eq!(origin.count("/rare/1"), 3);
    // Each key by itself, and only where the rule says so.
    assert_eq!(ask("/rare/2").0, "SCARCE");
    assert_eq!(
        (ask("/other").0, ask("/other").0),
        ("MISS".to_owned(), "HIT".to_owned())
    );
    node.wait_figure("total/cache/SCARCE/requests", 3);
    node.wait_figure("total/not_stored/min_uses", 3);
}

#[test]
fn what_was_stored_once_is_stored_again_at_once() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("x").cached("max-age=60")]);
    let node = TestNode::builder()
        .origin(&origin)
        .rule("min_uses = 2")
        .disk("64MiB")
        .start();
    let ask = || node.get("a.test", "/p").expect(200, "x").cache().to_owned();
    assert_eq!([ask(), ask(), ask()], ["SCARCE", "MISS", "HIT"]);
    let _ = node.purge("http://a.test/p");
    assert_eq!([ask(), ask()], ["MISS", "HIT"], "its uses were forgotten with it");
}
