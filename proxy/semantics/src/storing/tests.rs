use std::time::Duration;

use http::{HeaderMap, Method};
use proptest::prelude::*;

use super::{Exchange, Freshness, LifetimeSource, Refusal, judge};
use crate::fields::{any_value, header_map};
use crate::{DELTA_MAX, Heuristic, Overrides, Policy, SetCookie, StatusMatch};

/// Fri, 06 Nov 2026 12:00:00 GMT
const NOW: i64 = 1_793_966_400;
const DATE: (&str, &str) = ("date", "Fri, 06 Nov 2026 12:00:00 GMT");
const IN_A_MINUTE: &str = "Fri, 06 Nov 2026 12:01:00 GMT";
const LONG_AGO: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

type Verdict = Result<(u64, LifetimeSource), Refusal>;

const fn exchange(fields: &HeaderMap) -> Exchange<'_> {
    Exchange {
        request_method: &Method::GET,
        request_authorization: false,
        request_no_store: false,
        status: 200,
        fields,
        request_time: NOW,
        response_time: NOW,
        framing_ambiguous: false,
    }
}

fn judged(lines: &[(&str, &str)], policy: &Policy) -> Result<Freshness, Refusal> {
    judge(&exchange(&header_map(lines)), policy)
}

fn lifetime(lines: &[(&str, &str)], policy: &Policy) -> Verdict {
    judged(lines, policy).map(|freshness| (freshness.lifetime_secs, freshness.source))
}

fn status(status: u16, lines: &[(&str, &str)], policy: &Policy) -> Verdict {
    judge(
        &Exchange {
            status,
            ..exchange(&header_map(lines))
        },
        policy,
    )
    .map(|freshness| (freshness.lifetime_secs, freshness.source))
}

fn cached(line: &str) -> Verdict {
    lifetime(&[("cache-control", line)], &Policy::default())
}

fn with_ttl(status: StatusMatch, secs: u64) -> Policy {
    Policy {
        ttl: vec![(status, Duration::from_secs(secs))],
        ..Policy::default()
    }
}

fn forcing(overrides: Overrides) -> Policy {
    Policy {
        ttl_force: true,
        overrides,
        ..with_ttl(StatusMatch::Exactly(200), 10)
    }
}

fn cdn() -> Policy {
    Policy {
        targeted: vec!["larder-cache-control".to_owned(), "cdn-cache-control".to_owned()],
        ..Policy::default()
    }
}

#[test]
fn b05_rfc9111_5_2_2_10_s_maxage_beats_max_age() {
    let s_maxage = |secs| Ok((secs, LifetimeSource::SMaxage));
    let cases = [
        ("max-age=0, s-maxage=30", s_maxage(30)),
        ("s-maxage=30, max-age=0", s_maxage(30)),
        ("s-maxage=0, max-age=30", Err(Refusal::Expired)),
        ("s-maxage=x, max-age=30", Err(Refusal::Expired)),
        ("s-maxage=30, max-age=x", s_maxage(30)),
        ("s-maxage=99, max-age=30", s_maxage(99)),
        ("max-age=30", Ok((30, LifetimeSource::MaxAge))),
    ];
    for (line, expected) in cases {
        assert_eq!(cached(line), expected, "{line}");
        let and_expires = [("cache-control", line), ("expires", LONG_AGO), DATE];
        assert_eq!(lifetime(&and_expires, &Policy::default()), expected, "{line}");
    }
}

#[test]
fn b06_huge_lifetimes_and_ages_saturate() {
    for digits in [
        "2147483648",
        "4294967297",
        "18446744073709551616",
        "999999999999999999999999999999",
    ] {
        assert_eq!(
            cached(&format!("max-age={digits}")),
            Ok((DELTA_MAX, LifetimeSource::MaxAge))
        );
        let aged = [("cache-control", "max-age=99999999999"), ("age", digits)];
        assert_eq!(lifetime(&aged, &Policy::default()), Err(Refusal::Expired), "{digits}");
    }
}

#[test]
fn b07_an_invalid_lifetime_is_stale_and_no_default_takes_its_place() {
    for line in [
        "max-age='60'",
        "max-age=-1",
        "max-age=1.5",
        "max-age= 60",
        "max-age",
        "max-age=60;",
        "max-age=60, max-age=x",
    ] {
        assert_eq!(cached(line), Err(Refusal::Expired), "{line}");
        let fields = [("cache-control", line), ("expires", IN_A_MINUTE), DATE];
        assert_eq!(
            lifetime(&fields, &with_ttl(StatusMatch::Any, 10)),
            Err(Refusal::Expired),
            "{line}"
        );
    }
    assert_eq!(cached("max-age=\"60\""), Ok((60, LifetimeSource::MaxAge)));
    assert_eq!(
        cached("foo=\", max-age=60,\", max-age=1"),
        Ok((1, LifetimeSource::MaxAge))
    );
}

#[test]
fn b08_rfc9111_5_3_max_age_beats_expires_in_any_order() {
    let fields = [("cache-control", "max-age=60"), ("expires", LONG_AGO)];
    let swapped = [fields[1], fields[0]];
    for lines in [fields, swapped] {
        assert_eq!(lifetime(&lines, &Policy::default()), Ok((60, LifetimeSource::MaxAge)));
    }
}

#[test]
fn b09_rfc9111_5_3_expires() {
    let fresh = |secs| Ok((secs, LifetimeSource::Expires));
    let stale = Err(Refusal::Expired);
    let cases: &[(&[(&str, &str)], Verdict)] = &[
        (&[("expires", IN_A_MINUTE), DATE], fresh(60)),
        (&[("expires", IN_A_MINUTE)], fresh(60)),
        (&[("expires", IN_A_MINUTE), ("date", "foo")], fresh(60)),
        (&[("expires", "Friday, 06-Nov-26 12:01:00 GMT"), DATE], fresh(60)),
        (&[("expires", "Fri Nov  6 12:01:00 2026"), DATE], fresh(60)),
        (&[("expires", DATE.1), DATE], stale),
        (&[("expires", LONG_AGO), DATE], stale),
        (&[("expires", "0"), DATE], stale),
        (&[("expires", "-1"), DATE], stale),
        (&[("expires", ""), DATE], stale),
        (&[("expires", "Fri, 06-Nov-26 12:01:00 GMT"), DATE], stale),
        (&[("expires", "Fri, 06 Nov 2026 12:01:00 UTC"), DATE], stale),
        (&[("expires", "Fri, 06 Nov 2026 12:01:00 AEST"), DATE], stale),
        (&[("expires", "Fri 06 Nov 2026 12:01:00 GMT"), DATE], stale),
        (&[("expires", "Fri, 06 Nov 2026 2:01:00 GMT"), DATE], stale),
        (&[("expires", IN_A_MINUTE), ("expires", IN_A_MINUTE), DATE], stale),
        // The origin's clock runs ahead: its own dates count.
        (
            &[
                ("expires", "Fri, 06 Nov 2026 12:06:00 GMT"),
                ("date", "Fri, 06 Nov 2026 12:05:00 GMT"),
            ],
            fresh(60),
        ),
        (
            &[("expires", IN_A_MINUTE), ("date", "Fri, 06 Nov 2026 12:05:00 GMT")],
            stale,
        ),
        (
            &[
                ("expires", "Fri, 06 Nov 2026 12:00:20 GMT"),
                ("date", "Fri, 06 Nov 2026 12:00:10 GMT"),
                ("age", "15"),
            ],
            stale,
        ),
        // It is behind: what it seems to have aged counts too.
        (
            &[("expires", IN_A_MINUTE), ("date", "Fri, 06 Nov 2026 11:59:00 GMT")],
            fresh(120),
        ),
        (
            &[
                ("expires", "Fri, 06 Nov 2026 12:00:10 GMT"),
                ("date", "Fri, 06 Nov 2026 11:59:50 GMT"),
                ("age", "25"),
            ],
            stale,
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(lifetime(lines, &Policy::default()), *expected, "{lines:?}");
    }
}

#[test]
fn b10_rfc9111_4_2_3_age_counts_against_the_lifetime() {
    let aged = |age| {
        judged(
            &[("cache-control", "max-age=3600"), ("age", age), DATE],
            &Policy::default(),
        )
    };
    let left = |age| aged(age).map(|freshness| freshness.ttl(freshness.initial_age_secs));
    assert_eq!(left("0"), Ok(3600));
    assert_eq!(left("3599"), Ok(1));
    assert_eq!(left("3600"), Err(Refusal::Expired));
    assert_eq!(left("0, 7200"), Ok(3600));
    assert_eq!(left("7200, 0"), Err(Refusal::Expired));
    assert_eq!(left("-1"), Ok(3600));
    assert_eq!(left("1.5"), Ok(3600));
    let slow = header_map(&[("cache-control", "max-age=3600"), ("age", "3590")]);
    let slow = Exchange {
        request_time: NOW - 4,
        ..exchange(&slow)
    };
    let freshness = judge(&slow, &Policy::default()).expect("fresh");
    assert_eq!(
        (freshness.initial_age_secs, freshness.ttl(3594), freshness.ttl(3700)),
        (3594, 6, -100)
    );
    assert_eq!(freshness.ttl(u64::MAX), 3600 - i64::MAX);
}

#[test]
fn rfc9111_5_2_2_prohibitions() {
    let cases = [
        ("no-store, max-age=60", Refusal::NoStore),
        ("NO-STORE, max-age=60", Refusal::NoStore),
        ("private, max-age=60", Refusal::Private),
        ("private=\"x\", max-age=60", Refusal::Private),
        ("public; private, max-age=60", Refusal::Private),
        ("no-cache, max-age=60", Refusal::NoCache),
        ("no-cache=\"set-cookie\", max-age=60", Refusal::NoCache),
        ("no-cache", Refusal::NoCache),
        ("public", Refusal::NoFreshness),
        ("foo", Refusal::NoFreshness),
        ("max-age=0, must-revalidate", Refusal::Expired),
    ];
    for (line, expected) in cases {
        assert_eq!(cached(line), Err(expected), "{line}");
    }
    assert_eq!(lifetime(&[], &Policy::default()), Err(Refusal::NoFreshness));
}

#[test]
fn rfc9111_4_2_4_what_forbids_stale_use() {
    let cases = [
        ("max-age=60", false),
        ("max-age=60, must-revalidate", true),
        ("max-age=60, proxy-revalidate", true),
        ("s-maxage=60", true),
    ];
    for (line, expected) in cases {
        let freshness = judged(&[("cache-control", line)], &Policy::default()).expect("fresh");
        assert_eq!(freshness.must_revalidate, expected, "{line}");
    }
    let windows = judged(
        &[(
            "cache-control",
            "max-age=60, stale-while-revalidate=5, stale-if-error=x",
        )],
        &Policy::default(),
    );
    let windows = windows.map(|freshness| (freshness.stale_while_revalidate_secs, freshness.stale_if_error_secs));
    assert_eq!(windows, Ok((Some(5), None)));
}

#[test]
fn rfc9111_3_what_the_request_and_the_framing_forbid() {
    let fields = header_map(&[("cache-control", "max-age=60")]);
    let good = exchange(&fields);
    let refused =
        |exchange: Exchange<'_>| judge(&exchange, &with_ttl(StatusMatch::Any, 60)).map(|freshness| freshness.source);
    assert_eq!(refused(good), Ok(LifetimeSource::MaxAge));
    assert_eq!(
        refused(Exchange {
            framing_ambiguous: true,
            ..good
        }),
        Err(Refusal::Framing)
    );
    assert_eq!(
        refused(Exchange {
            request_no_store: true,
            ..good
        }),
        Err(Refusal::RequestNoStore)
    );
    for method in [Method::HEAD, Method::POST, Method::OPTIONS] {
        assert_eq!(
            refused(Exchange {
                request_method: &method,
                ..good
            }),
            Err(Refusal::Status)
        );
    }
}

#[test]
fn b02_rfc9111_3_5_authorization() {
    let cases = [
        ("max-age=60", false),
        ("max-age=60, proxy-revalidate", false),
        ("max-age=60, public", true),
        ("max-age=60, must-revalidate", true),
        ("s-maxage=60", true),
        ("public=1, max-age=60", false),
        ("public; max-age=60", false),
    ];
    for (line, shareable) in cases {
        let fields = header_map(&[("cache-control", line)]);
        let without = judge(&exchange(&fields), &Policy::default());
        let with = judge(
            &Exchange {
                request_authorization: true,
                ..exchange(&fields)
            },
            &Policy::default(),
        );
        assert_eq!(with.is_ok(), shareable, "{line}");
        if shareable {
            assert_eq!(with, without, "{line}");
        } else if without.is_ok() {
            assert_eq!(with, Err(Refusal::Authorization), "{line}");
        }
    }
    // Neither a rule's lifetime nor any override permits sharing.
    let overrides = Overrides {
        no_store: true,
        private: true,
        set_cookie: true,
    };
    let nothing = HeaderMap::new();
    let authorized = Exchange {
        request_authorization: true,
        ..exchange(&nothing)
    };
    assert_eq!(judge(&authorized, &forcing(overrides)), Err(Refusal::Authorization));
}

#[test]
fn b14_rfc9111_3_statuses_with_explicit_freshness() {
    for code in [
        200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599,
    ] {
        let fresh = status(code, &[("cache-control", "max-age=60")], &Policy::default());
        assert_eq!(fresh, Ok((60, LifetimeSource::MaxAge)), "{code}");
        assert_eq!(
            status(code, &[("cache-control", "max-age=0")], &Policy::default()),
            Err(Refusal::Expired),
            "{code}"
        );
        assert_eq!(
            status(code, &[], &Policy::default()),
            Err(Refusal::NoFreshness),
            "{code}"
        );
    }
    for code in [0, 100, 103, 199, 206, 304, 600, 999, u16::MAX] {
        let refused = status(
            code,
            &[("cache-control", "max-age=60")],
            &with_ttl(StatusMatch::Any, 60),
        );
        assert_eq!(refused, Err(Refusal::Status), "{code}");
    }
}

#[test]
fn b14_a_rules_lifetime_is_for_its_statuses_and_beats_no_prohibition() {
    let mut policy = with_ttl(StatusMatch::Exactly(404), 2);
    policy
        .ttl
        .push((StatusMatch::Exactly(502), Duration::from_millis(1500)));
    let rule = |secs| Ok((secs, LifetimeSource::Rule));
    assert_eq!(status(404, &[], &policy), rule(2));
    assert_eq!(status(502, &[], &policy), rule(2));
    assert_eq!(status(503, &[], &policy), Err(Refusal::NoFreshness));
    assert_eq!(
        status(404, &[("cache-control", "no-store")], &policy),
        Err(Refusal::NoStore)
    );
    assert_eq!(
        status(404, &[("cache-control", "private")], &policy),
        Err(Refusal::Private)
    );
    assert_eq!(
        status(404, &[("cache-control", "max-age=9")], &policy),
        Ok((9, LifetimeSource::MaxAge))
    );
    assert_eq!(status(404, &[("expires", "0")], &policy), Err(Refusal::Expired));
    policy.ttl.insert(0, (StatusMatch::Any, Duration::from_secs(7)));
    assert_eq!(
        (status(404, &[], &policy), status(299, &[], &policy)),
        (rule(2), rule(7))
    );
    assert_eq!(
        status(404, &[], &with_ttl(StatusMatch::Exactly(404), 0)),
        Err(Refusal::Expired)
    );
    // It runs from receipt, however old the response is.
    let aged = judged(&[("age", "3000")], &with_ttl(StatusMatch::Any, 10)).expect("fresh");
    assert_eq!((aged.initial_age_secs, aged.ttl(3000)), (3000, 10));
}

#[test]
fn a_forced_lifetime_breaks_only_what_it_names() {
    let rule = Ok((10, LifetimeSource::Rule));
    let none = Overrides::default();
    let no_store = Overrides { no_store: true, ..none };
    let private = Overrides { private: true, ..none };
    let cases = [
        ("max-age=60", none, rule),
        ("max-age=0", none, rule),
        ("max-age=x, s-maxage=5", none, rule),
        ("no-store", none, Err(Refusal::NoStore)),
        ("no-store", private, Err(Refusal::NoStore)),
        ("no-store", no_store, rule),
        ("no-store, no-cache, must-revalidate", no_store, rule),
        ("no-cache", none, Err(Refusal::NoCache)),
        ("no-cache", private, Err(Refusal::NoCache)),
        ("private", none, Err(Refusal::Private)),
        ("private", no_store, Err(Refusal::Private)),
        ("private", private, rule),
        ("private, no-store", private, Err(Refusal::NoStore)),
    ];
    for (line, overrides, expected) in cases {
        assert_eq!(
            lifetime(&[("cache-control", line), ("expires", "0")], &forcing(overrides)),
            expected,
            "{line} {overrides:?}"
        );
    }
    // Without force, and for other statuses, the names break nothing.
    let unforced = Policy {
        ttl_force: false,
        ..forcing(no_store)
    };
    assert_eq!(
        lifetime(&[("cache-control", "no-store")], &unforced),
        Err(Refusal::NoStore)
    );
    assert_eq!(
        status(404, &[("cache-control", "no-store")], &forcing(no_store)),
        Err(Refusal::NoStore)
    );
    assert_eq!(lifetime(&[("vary", "*")], &forcing(none)), Err(Refusal::VaryAny));
}

#[test]
fn b01_rfc9111_7_3_set_cookie() {
    let fields = [
        ("cache-control", "public, max-age=60"),
        ("set-cookie", "sid=1; HttpOnly"),
    ];
    let stripped = |policy: &Policy| judged(&fields, policy).map(|freshness| freshness.strip_set_cookie);
    let wanting = |set_cookie| Policy {
        set_cookie,
        ..Policy::default()
    };
    assert_eq!(stripped(&Policy::default()), Err(Refusal::SetCookie));
    assert_eq!(stripped(&wanting(SetCookie::Strip)), Ok(true));
    assert_eq!(stripped(&wanting(SetCookie::Store)), Ok(false));
    assert_eq!(stripped(&forcing(Overrides::default())), Err(Refusal::SetCookie));
    assert_eq!(
        stripped(&forcing(Overrides {
            set_cookie: true,
            ..Overrides::default()
        })),
        Ok(true)
    );
    let without = judged(&fields[..1], &wanting(SetCookie::Strip)).map(|freshness| freshness.strip_set_cookie);
    assert_eq!(without, Ok(false));
}

#[test]
fn b19_rfc9111_4_2_2_heuristic_freshness() {
    let on = Policy {
        heuristic: Some(Heuristic {
            fraction: 0.1,
            max: Duration::from_secs(86_400),
        }),
        ..Policy::default()
    };
    let ten_days = [("last-modified", "Tue, 27 Oct 2026 12:00:00 GMT"), DATE];
    let hundred_secs = [("last-modified", "Fri, 06 Nov 2026 11:58:20 GMT"), DATE];
    let guess = |secs| Ok((secs, LifetimeSource::Heuristic));
    assert_eq!(lifetime(&ten_days, &Policy::default()), Err(Refusal::NoFreshness));
    assert_eq!(lifetime(&ten_days, &on), guess(86_400));
    assert_eq!(lifetime(&hundred_secs, &on), guess(10));
    for code in [200, 203, 204, 404, 405, 410, 414, 501] {
        assert_eq!(status(code, &hundred_secs, &on), guess(10), "{code}");
    }
    for code in [201, 202, 302, 307, 403, 500, 502, 503, 504, 599] {
        assert_eq!(status(code, &hundred_secs, &on), Err(Refusal::NoFreshness), "{code}");
    }
    let public = [hundred_secs[0], DATE, ("cache-control", "public")];
    assert_eq!(status(599, &public, &on), guess(10));
    for last_modified in [DATE.1, IN_A_MINUTE, "0", ""] {
        assert_eq!(
            lifetime(&[("last-modified", last_modified), DATE], &on),
            Err(Refusal::NoFreshness),
            "{last_modified}"
        );
    }
    let with_max_age = [hundred_secs[0], DATE, ("cache-control", "max-age=5")];
    assert_eq!(lifetime(&with_max_age, &on), Ok((5, LifetimeSource::MaxAge)));
    let with_rule = Policy {
        ttl: vec![(StatusMatch::Any, Duration::from_secs(3))],
        ..on
    };
    assert_eq!(lifetime(&hundred_secs, &with_rule), Ok((3, LifetimeSource::Rule)));
    for fraction in [f64::NAN, -1.0, 0.0] {
        let odd = Policy {
            heuristic: Some(Heuristic {
                fraction,
                max: Duration::MAX,
            }),
            ..Policy::default()
        };
        assert_eq!(lifetime(&ten_days, &odd), Err(Refusal::Expired), "{fraction}");
    }
}

#[test]
fn rfc9111_5_2_2_3_must_understand() {
    let line = [("cache-control", "max-age=60, no-store, must-understand")];
    assert_eq!(status(200, &line, &Policy::default()), Ok((60, LifetimeSource::MaxAge)));
    assert_eq!(status(499, &line, &Policy::default()), Err(Refusal::Status));
    assert_eq!(
        status(
            499,
            &[("cache-control", "max-age=60, must-understand")],
            &Policy::default()
        ),
        Err(Refusal::Status)
    );
    assert_eq!(
        status(
            200,
            &[("cache-control", "max-age=60, no-store, must-understand=1")],
            &Policy::default()
        ),
        Err(Refusal::NoStore)
    );
}

#[test]
fn b21_b27_rfc9111_4_1_vary_that_is_not_stored() {
    let with = |vary: &str| lifetime(&[("cache-control", "max-age=60"), ("vary", vary)], &Policy::default());
    for vary in ["*", "*, Foo", "Foo, *", ", *", " * "] {
        assert_eq!(with(vary), Err(Refusal::VaryAny), "{vary}");
    }
    for vary in [":", "a b", "\u{e9}", &"x".repeat(200)] {
        assert_eq!(with(vary), Err(Refusal::VaryMalformed), "{vary}");
    }
    assert_eq!(with("Accept-Encoding"), Ok((60, LifetimeSource::MaxAge)));
}

#[test]
fn rfc9213_2_2_targeted_fields_replace_cache_control_and_expires() {
    let targeted = |secs| Ok((secs, LifetimeSource::Targeted));
    let by_cache_control = Ok((5, LifetimeSource::MaxAge));
    let cases = [
        ("max-age=3600", targeted(3600)),
        ("max-age=2147483648", targeted(DELTA_MAX)),
        ("max-age=99999999999", targeted(DELTA_MAX)),
        ("s-maxage=7, max-age=3600", targeted(7)),
        ("max-age=1, max-age=60", targeted(60)),
        ("foobar, max-age=3600;x=1", targeted(3600)),
        ("max-age=0", Err(Refusal::Expired)),
        ("max-age=-1", Err(Refusal::Expired)),
        ("max-age=60, private", Err(Refusal::Private)),
        ("max-age=60, private=\"x\"", Err(Refusal::Private)),
        ("max-age=60, private=?0", targeted(60)),
        ("max-age=60, no-cache", Err(Refusal::NoCache)),
        ("max-age=60, no-cache=(a b)", Err(Refusal::NoCache)),
        ("max-age=60, no-store", Err(Refusal::NoStore)),
        ("max-age=60, no-store=1", Err(Refusal::NoStore)),
        ("max-age=60, no-store=?0", targeted(60)),
        ("foo", Err(Refusal::NoFreshness)),
        // Not usable: Cache-Control decides.
        ("", by_cache_control),
        ("max-age=\"10000\"", by_cache_control),
        ("max-age=1.5", by_cache_control),
        ("max-age", by_cache_control),
        ("max-age =100", by_cache_control),
        ("max-age= 100", by_cache_control),
        ("MaX-aGe=3600", by_cache_control),
        ("max-age=10000, &&&&&", by_cache_control),
        ("max-age=1000000000000000", by_cache_control),
        ("private, \u{e9}", by_cache_control),
    ];
    for (line, expected) in cases {
        let fields = [
            ("cdn-cache-control", line),
            ("cache-control", "max-age=5"),
            ("expires", LONG_AGO),
            DATE,
        ];
        assert_eq!(lifetime(&fields, &cdn()), expected, "{line}");
        assert_eq!(lifetime(&fields, &Policy::default()), by_cache_control, "{line}");
    }
}

#[test]
fn rfc9213_targeted_fields_with_other_fields() {
    let fresh = ("cdn-cache-control", "max-age=3600");
    let targeted = |secs| Ok((secs, LifetimeSource::Targeted));
    assert_eq!(
        lifetime(&[fresh, ("cache-control", "no-store, private")], &cdn()),
        targeted(3600)
    );
    assert_eq!(lifetime(&[fresh, ("age", "7200")], &cdn()), Err(Refusal::Expired));
    assert_eq!(
        lifetime(&[("cdn-cache-control", "foo"), ("expires", IN_A_MINUTE), DATE], &cdn()),
        Err(Refusal::NoFreshness)
    );
    assert_eq!(
        lifetime(
            &[("cdn-cache-control", "a"), ("cdn-cache-control", "max-age=9")],
            &cdn()
        ),
        targeted(9)
    );
    let preferred = ("larder-cache-control", "max-age=1");
    assert_eq!(lifetime(&[fresh, preferred], &cdn()), targeted(1));
    assert_eq!(
        lifetime(&[fresh, ("larder-cache-control", "&")], &cdn()),
        targeted(3600)
    );
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let targeted = prop::bool::ANY.prop_map(|is_on| if is_on { cdn().targeted } else { Vec::new() });
    let heuristic = prop::option::of((0.0..1.0, 0..9000_u64));
    (any::<[bool; 5]>(), prop::option::of(0..5000_u64), targeted, heuristic).prop_map(
        |(flags, ttl, targeted, heuristic)| {
            let [ttl_force, no_store, private, set_cookie, strip] = flags;
            Policy {
                ttl: ttl
                    .map(|secs| (StatusMatch::Any, Duration::from_secs(secs)))
                    .into_iter()
                    .collect(),
                ttl_force,
                overrides: Overrides {
                    no_store,
                    private,
                    set_cookie,
                },
                set_cookie: if strip { SetCookie::Strip } else { SetCookie::NoStore },
                heuristic: heuristic.map(|(fraction, secs)| Heuristic {
                    fraction,
                    max: Duration::from_secs(secs),
                }),
                targeted,
            }
        },
    )
}

#[test]
fn an_answer_of_clocks_centuries_apart_has_an_age_that_can_be_counted_up_from() {
    let policy = Policy {
        ttl_force: true,
        ..with_ttl(StatusMatch::Any, 1)
    };
    for (request_time, response_time) in [
        (-1_734_975_742_789_499_702, 7_488_396_294_065_276_105),
        (i64::MIN, i64::MAX),
        (0, i64::MAX),
    ] {
        let fields = header_map::<&str>(&[]);
        let exchange = Exchange {
            request_time,
            response_time,
            ..exchange(&fields)
        };
        let freshness = judge(&exchange, &policy).expect("the rule forces a lifetime");
        assert_eq!(freshness.initial_age_secs, DELTA_MAX);
        assert_eq!(freshness.ttl(freshness.initial_age_secs), 1);
        assert_eq!(freshness.ttl(freshness.initial_age_secs + 1), 0);
        assert_eq!(judge(&exchange, &Policy::default()), Err(Refusal::NoFreshness));
    }
}

#[test]
fn what_expired_before_an_age_beyond_all_numbers_is_stale() {
    let fields = header_map(&[DATE, ("expires", "Fri, 31 Dec 9999 23:59:59 GMT")]);
    let exchange = Exchange {
        request_time: 0,
        response_time: i64::MAX,
        ..exchange(&fields)
    };
    assert_eq!(judge(&exchange, &Policy::default()), Err(Refusal::Expired));
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_what_is_stored_is_fresh(
        values in prop::collection::vec(any_value(), 6), policy in any_policy(), code: u16, request_time: i64, response_time: i64,
    ) {
        let names = ["cache-control", "cdn-cache-control", "expires", "date", "age", "vary"];
        let fields = header_map(&names.into_iter().zip(&values).collect::<Vec<_>>());
        let exchange = Exchange { status: code % 700, request_time, response_time, ..exchange(&fields) };
        if let Ok(freshness) = judge(&exchange, &policy) {
            prop_assert!(freshness.ttl(freshness.initial_age_secs) > 0);
        }
    }

    #[test]
    fn a_lifetime_is_never_more_than_the_inputs_allow(
        max_age in prop::option::of(0..5000_u64), s_maxage in prop::option::of(0..5000_u64), age in 0..5000_u64,
        flags in prop::sample::subsequence(vec!["no-store", "private", "no-cache", "public", "must-revalidate"], 0..3),
        policy in any_policy(), authorized: bool, cookie: bool,
    ) {
        let mut members: Vec<_> = flags.iter().map(ToString::to_string).collect();
        members.extend(max_age.map(|secs| format!("max-age={secs}")));
        members.extend(s_maxage.map(|secs| format!("S-MaxAge=\"{secs}\"")));
        let (line, age_line) = (members.join(","), age.to_string());
        let mut lines = vec![("cache-control", line.as_str()), ("age", age_line.as_str())];
        lines.extend(cookie.then_some(("set-cookie", "a=b")));
        let fields = header_map(&lines);
        let Ok(freshness) = judge(&Exchange { request_authorization: authorized, ..exchange(&fields) }, &policy) else { return Ok(()) };

        let left = u64::try_from(freshness.ttl(freshness.initial_age_secs)).expect("fresh");
        let by_rule = policy.ttl_secs(200);
        let by_origin = s_maxage.or(max_age).map(|secs| secs.saturating_sub(age));
        let allowed = if policy.ttl_force { by_rule.or(by_origin) } else { by_origin.or(by_rule) };
        prop_assert_eq!(Some(left), allowed);
        prop_assert!(!cookie || freshness.strip_set_cookie);
        prop_assert!(!authorized || flags.contains(&"public") || flags.contains(&"must-revalidate") || s_maxage.is_some());
        let may_break = policy.ttl_force && by_rule.is_some();
        prop_assert!(!flags.contains(&"private") || may_break && policy.overrides.private);
        prop_assert!(!(flags.contains(&"no-store") || flags.contains(&"no-cache")) || may_break && policy.overrides.no_store);
    }
}
