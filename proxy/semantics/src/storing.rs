//! May this response be stored by a shared cache, and for how long is it fresh? (RFC 9111 sections 3 and 4.2)

mod refusal;
#[cfg(test)]
mod tests;

use http::{HeaderMap, Method, header};

pub use refusal::Refusal;

use crate::age::{corrected_initial_age, elapsed, parse_age};
use crate::cache_control::ResponseDirectives;
use crate::{DELTA_MAX, Delta, Overrides, Policy, SetCookie, Vary, date, targeted};

/// A request and the response that the origin gave to it. Times are seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// Only the answer to a GET can be stored.
    pub request_method: &'a Method,
    /// Did the request carry Authorization?
    pub request_authorization: bool,
    /// Did the request say `no-store`, and is the client obeyed in that?
    pub request_no_store: bool,
    /// The status of the final response.
    pub status: u16,
    /// The fields of the response.
    pub fields: &'a HeaderMap,
    /// When the request was sent. Best computed as `response_time` less the whole seconds that a monotonic clock counted, so that
    /// neither a step of the wall clock nor the turn of a second counts as age.
    pub request_time: i64,
    /// When the head of the response came.
    pub response_time: i64,
    /// Could the length of the response be read in more than one way?
    pub framing_ambiguous: bool,
}

/// For how long a stored response may be used without asking the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Lifetime in seconds, counted from the response's origination: it is fresh while its age is less.
    pub lifetime_secs: u64,
    /// Where the lifetime comes from.
    pub source: LifetimeSource,
    /// Age at the moment of receipt (RFC 9111 section 4.2.3), always less than the lifetime and at most [`DELTA_MAX`].
    pub initial_age_secs: u64,
    /// Never to be served stale: `must-revalidate`, `proxy-revalidate` or `s-maxage` (sections 5.2.2.2, 5.2.2.8, 5.2.2.10).
    pub must_revalidate: bool,
    /// The stored response must not have the Set-Cookie lines.
    pub strip_set_cookie: bool,
    /// For how long after that the origin lets it be used while it is refreshed (RFC 5861 section 3).
    pub stale_while_revalidate_secs: Option<u64>,
    /// For how long after that the origin lets it be used if it fails (RFC 5861 section 4).
    pub stale_if_error_secs: Option<u64>,
}

impl Freshness {
    /// Seconds of freshness left at an age; negative once stale.
    #[must_use]
    pub fn ttl(&self, age_secs: u64) -> i64 {
        let signed = |secs| i64::try_from(secs).unwrap_or(i64::MAX);
        signed(self.lifetime_secs).saturating_sub(signed(age_secs))
    }
}

/// Where a lifetime comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifetimeSource {
    /// A targeted field (RFC 9213).
    Targeted,
    /// `s-maxage`
    SMaxage,
    /// `max-age`
    MaxAge,
    /// Expires less Date.
    Expires,
    /// A rule's `ttl`.
    Rule,
    /// A part of the age of Last-Modified (RFC 9111 section 4.2.2).
    Heuristic,
}

/// Decides whether a shared cache may store the response, and for how long it is then fresh.
///
/// A response that would be stale on arrival is refused too. Methods other than GET are refused with [`Refusal::Status`]: whoever
/// asks should have known.
pub fn judge(exchange: &Exchange<'_>, policy: &Policy) -> Result<Freshness, Refusal> {
    check_exchange(exchange)?;
    let said = Said::of(exchange, policy);
    let forced_ttl = policy.ttl_force.then(|| policy.ttl_secs(exchange.status)).flatten();
    // Without a lifetime to force there is nothing to break prohibitions for.
    let overrides = forced_ttl.map_or_else(Overrides::default, |_| policy.overrides);
    check_directives(exchange, &said.directives, overrides)?;
    let strip_set_cookie = check_set_cookie(exchange.fields, policy.set_cookie, overrides)?;
    Vary::parse(exchange.fields)?;

    let initial_age_secs = said.initial_age(exchange);
    let (lifetime_secs, source) = match forced_ttl {
        Some(ttl) => (initial_age_secs.saturating_add(ttl), LifetimeSource::Rule),
        None => said.lifetime(exchange, policy, initial_age_secs)?,
    };
    if lifetime_secs <= initial_age_secs {
        return Err(Refusal::Expired);
    }
    let directives = &said.directives;
    Ok(Freshness {
        lifetime_secs,
        source,
        initial_age_secs,
        must_revalidate: directives.must_revalidate || directives.proxy_revalidate || directives.s_maxage.is_present(),
        strip_set_cookie,
        stale_while_revalidate_secs: directives.stale_while_revalidate.seconds(),
        stale_if_error_secs: directives.stale_if_error.seconds(),
    })
}

/// What needs no look at the response's directives (RFC 9111 section 3).
fn check_exchange(exchange: &Exchange<'_>) -> Result<(), Refusal> {
    if exchange.framing_ambiguous {
        return Err(Refusal::Framing);
    }
    // Partial and not-modified responses are no representation; 1xx are not final; beyond 599 lies nothing.
    if exchange.request_method != Method::GET
        || !matches!(exchange.status, 200..=599)
        || matches!(exchange.status, 206 | 304)
    {
        return Err(Refusal::Status);
    }
    if exchange.request_no_store {
        return Err(Refusal::RequestNoStore);
    }
    Ok(())
}

fn check_directives(
    exchange: &Exchange<'_>,
    directives: &ResponseDirectives,
    overrides: Overrides,
) -> Result<(), Refusal> {
    // must-understand comes with a no-store that is for those who do not understand (section 5.2.2.3).
    if directives.must_understand && !is_understood(exchange.status) {
        return Err(Refusal::Status);
    }
    if directives.no_store && !directives.must_understand && !overrides.no_store {
        return Err(Refusal::NoStore);
    }
    // A restriction to named fields is taken for the whole response: cautious, and allowed (sections 5.2.2.4 and 5.2.2.7).
    if directives.private.is_present() && !overrides.private {
        return Err(Refusal::Private);
    }
    if directives.no_cache.is_present() && !overrides.no_store {
        return Err(Refusal::NoCache);
    }
    // Section 3.5.
    let shareable = directives.public || directives.must_revalidate || directives.s_maxage.seconds().is_some();
    if exchange.request_authorization && !shareable {
        return Err(Refusal::Authorization);
    }
    Ok(())
}

/// Must the Set-Cookie lines be taken off? A rule that breaks this prohibition means the answer, not somebody's session.
fn check_set_cookie(fields: &HeaderMap, wanted: SetCookie, overrides: Overrides) -> Result<bool, Refusal> {
    if !fields.contains_key(header::SET_COOKIE) {
        return Ok(false);
    }
    match wanted {
        SetCookie::Store => Ok(false),
        SetCookie::Strip => Ok(true),
        SetCookie::NoStore if overrides.set_cookie => Ok(true),
        SetCookie::NoStore => Err(Refusal::SetCookie),
    }
}

/// What the response says on caching.
struct Said {
    directives: ResponseDirectives,
    /// They come from a targeted field, so Expires does not count (RFC 9213 section 2.2).
    is_targeted: bool,
    date: Option<i64>,
}

impl Said {
    fn of(exchange: &Exchange<'_>, policy: &Policy) -> Self {
        let targeted = targeted::first_usable(exchange.fields, &policy.targeted);
        Self {
            is_targeted: targeted.is_some(),
            directives: targeted.unwrap_or_else(|| ResponseDirectives::parse(exchange.fields)),
            date: only_date(exchange, header::DATE.as_str()),
        }
    }

    /// At most [`DELTA_MAX`], as all that is said in seconds (RFC 9111 section 1.2.2). Clocks that are centuries apart give no number
    /// that could still be counted up from.
    fn initial_age(&self, exchange: &Exchange<'_>) -> u64 {
        let age = parse_age(exchange.fields);
        corrected_initial_age(age, self.date, exchange.request_time, exchange.response_time).min(DELTA_MAX)
    }

    /// Section 4.2.1, then the rule, then section 4.2.2.
    fn lifetime(
        &self,
        exchange: &Exchange<'_>,
        policy: &Policy,
        initial_age_secs: u64,
    ) -> Result<(u64, LifetimeSource), Refusal> {
        if let Some(explicit) = self.explicit_lifetime(exchange) {
            return Ok(explicit);
        }
        // A rule's lifetime is not the origin's promise about the response's age: it runs from receipt.
        if let Some(ttl) = policy.ttl_secs(exchange.status) {
            return Ok((initial_age_secs.saturating_add(ttl), LifetimeSource::Rule));
        }
        let guessed = self.heuristic_lifetime(exchange, policy).ok_or(Refusal::NoFreshness)?;
        Ok((guessed, LifetimeSource::Heuristic))
    }

    /// The lifetime that the origin gives; 0 where it gives one that cannot be read, which makes the response stale.
    fn explicit_lifetime(&self, exchange: &Exchange<'_>) -> Option<(u64, LifetimeSource)> {
        for (delta, source) in [
            (self.directives.s_maxage, LifetimeSource::SMaxage),
            (self.directives.max_age, LifetimeSource::MaxAge),
        ] {
            let lifetime = match delta {
                Delta::Absent => continue,
                Delta::Seconds(seconds) => seconds,
                Delta::Invalid => 0,
            };
            return Some((
                lifetime,
                if self.is_targeted {
                    LifetimeSource::Targeted
                } else {
                    source
                },
            ));
        }
        if self.is_targeted || !exchange.fields.contains_key(header::EXPIRES) {
            return None;
        }
        let lifetime = only_date(exchange, header::EXPIRES.as_str()).map_or(0, |expires| {
            // No longer than an age can be told, or what expired long ago would pass for fresh.
            elapsed(self.date.unwrap_or(exchange.response_time), expires).min(DELTA_MAX)
        });
        Some((lifetime, LifetimeSource::Expires))
    }

    fn heuristic_lifetime(&self, exchange: &Exchange<'_>, policy: &Policy) -> Option<u64> {
        let heuristic = policy.heuristic?;
        if !is_heuristically_cacheable(exchange.status) && !self.directives.public {
            return None;
        }
        let last_modified = only_date(exchange, header::LAST_MODIFIED.as_str())?;
        let unchanged_secs = elapsed(last_modified, self.date.unwrap_or(exchange.response_time));
        if unchanged_secs == 0 {
            return None;
        }
        // The conversion back saturates, and takes what is not a number for 0.
        let guessed = (unchanged_secs as f64 * heuristic.fraction) as u64;
        Some(guessed.min(heuristic.max.as_secs()).min(DELTA_MAX))
    }
}

/// The date in a field that may have one line only: with two, nobody can say which was meant.
fn only_date(exchange: &Exchange<'_>, name: &str) -> Option<i64> {
    let mut lines = exchange.fields.get_all(name).iter();
    let line = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    date::parse(line.as_bytes(), exchange.response_time)
}

/// Statuses that may be reused by a guess (RFC 9110 section 15.1), less 206, which is not stored.
const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Final statuses whose rules for caching we know and keep: those of RFC 9110 section 15, and a few whose definitions add none.
const fn is_understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451 | 500..=505 | 511)
}
