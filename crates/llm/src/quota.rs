//! Which failures oh-my-pi 18.3.4 takes for a used-up quota, and when it asks again (dialects.md 14.1). It looks for them before errors
//! that pass by themselves.

use std::time::Duration;

use serde_json::Value;

use crate::pattern::matches;

/// Phrases of a used-up quota; `?` is at most one character, `*` any text.
const USED_UP: [&str; 19] = [
    "usage?limit",
    "usage_not_included",
    "limit_reached",
    "quota?exceeded",
    "quota?reached",
    "quota?insufficient",
    "resource?exhausted",
    "exhausted your capacity",
    "quota will reset",
    "insufficient?balance",
    "insufficient?quota",
    "balance?exhausted",
    "out of credits",
    "out of usage",
    "out of extra usage",
    "personal-team-blocked",
    "access_terminated_error",
    "额度不足",
    "额度耗尽",
];

/// Chinese phrases of limits per minute, which pass although they may read like a quota.
const PASSING: [&str; 4] = ["速率*上限", "频率*上限", "每分钟*上限", "并发*上限"];

/// Chinese phrases of too many requests.
const THROTTLED: [&str; 7] = [
    "速率限制",
    "速率过快",
    "频率过高",
    "频率过快",
    "过于频繁",
    "稍后重试",
    "稍后再试",
];

/// Texts with which an account has to be paid (HTTP status 402).
const UNPAID: [&str; 5] = [
    "payment?required",
    "payment is required",
    "deactivated_workspace",
    "insufficient?balance",
    "insufficient?account?funds",
];

/// Words of a response that say nothing beyond its status.
const FRAME: [&str; 10] = [
    "429", "402", "http", "https", "status", "error", "code", "response", "message", "body",
];

const RATE_LIMIT: [&str; 4] = ["rate limit", "rate-limit", "rate_limit", "ratelimit"];
const PLAN_LIMIT: [&str; 8] = [
    "rate limit",
    "rate limits",
    "rate-limit",
    "rate-limits",
    "rate_limit",
    "ratelimit",
    "quota",
    "cap",
];
const CONCURRENT: [&str; 1] = ["concurren*"];
const CAPPED: [&str; 4] = ["limit", "quota", "exceed*", "reach*"];

/// Member `@type` of the details in which Google names the reason, in lower case.
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.errorinfo";

/// With a longer wait, Google's rate limit is a quota.
const LONG_RATE_LIMIT: Duration = Duration::from_secs(300);

/// What limits the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// What the account may use is used up.
    Quota,
    /// Too many requests in a short time.
    Rate,
    /// Too many requests at once.
    Concurrency,
    /// The model has no room.
    Capacity,
    /// The server has failed.
    Server,
    /// The words do not say.
    Unknown,
}

impl Cause {
    /// Time until the next request may succeed, if the provider names none.
    const fn wait(self) -> Duration {
        Duration::from_secs(match self {
            Self::Quota | Self::Unknown => 1_800,
            Self::Rate => 30,
            Self::Concurrency => 5,
            Self::Capacity => 45,
            Self::Server => 20,
        })
    }
}

/// Returns the time until a used-up quota may be there again: what the text names, else a guess by its words. `None` if the failure has
/// another cause. `status` is the HTTP status of the response. Overflows are classified elsewhere and must be checked first.
#[must_use]
pub fn quota_wait(text: &str, status: Option<u16>) -> Option<Duration> {
    let text = text.to_lowercase();
    let cause = cause_of(&text);
    is_used_up(&text, status, cause).then(|| named_wait(&text).unwrap_or_else(|| cause.wait()))
}

fn is_used_up(text: &str, status: Option<u16>, cause: Cause) -> bool {
    // It passes when other requests end. With the status of an unpaid account it is a quota.
    if cause == Cause::Concurrency && status != Some(402) {
        return false;
    }
    if says_used_up(text) {
        return true;
    }
    match status {
        Some(402) => {
            matches!(cause, Cause::Quota | Cause::Concurrency) || is_opaque(text) || any(text, &UNPAID)
        }
        Some(429) => cause == Cause::Quota || is_opaque(text),
        Some(403) | None => names_account_limit(text),
        Some(_) => false,
    }
}

fn any(text: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| matches(text, pattern))
}

/// Returns true if the text alone tells of a used-up quota.
fn says_used_up(text: &str) -> bool {
    match google_cause(text) {
        Some(cause) => cause == Cause::Quota,
        None if is_token_throttle(text) => false,
        None => any(text, &USED_UP) || is_chinese_quota(text) || lacks_credits(text) || caps_account(text),
    }
}

fn cause_of(text: &str) -> Cause {
    if let Some(cause) = google_cause(text) {
        return cause;
    }
    // The name of the status says nothing: servers that are busy send it, too.
    let names = ["resource exhausted", "resource_exhausted", "resource-exhausted"];
    let bare = names
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(*name, ""));
    let has = |words: &[&str]| words.iter().any(|word| bare.contains(*word));
    match () {
        () if has(&["quota will reset", "exhausted your capacity"]) || is_chinese_quota(text) => Cause::Quota,
        () if is_token_throttle(text) => Cause::Rate,
        () if is_concurrency(text) => Cause::Concurrency,
        () if has(&["capacity", "overloaded", "529", "503"]) => Cause::Capacity,
        () if caps_account(text) => Cause::Quota,
        () if has(&["per minute", "rate limit", "too many requests"]) => Cause::Rate,
        () if has(&[
            "exhausted",
            "quota",
            "usage limit",
            "out of credits",
            "access_terminated_error",
        ]) || matches(text, "insufficient?balance")
            || lacks_credits(text) =>
        {
            Cause::Quota
        }
        () if has(&["500", "internal error", "internal server error"]) => Cause::Server,
        () if bare.len() < text.len() => Cause::Capacity,
        () => Cause::Unknown,
    }
}

/// The reason that Google names in the details of the error.
fn google_cause(text: &str) -> Option<Cause> {
    let body = text.get(text.find('{')?..=text.rfind('}')?)?;
    let body: Value = serde_json::from_str(body).ok()?;
    let error = body.get("error")?;
    if error.get("status")?.as_str()?.trim() != "resource_exhausted" {
        return None;
    }
    let named = error.get("details")?.as_array()?.iter();
    let mut named = named.filter(|detail| detail.get("@type").and_then(Value::as_str) == Some(ERROR_INFO));
    named.find_map(|detail| match detail.get("reason")?.as_str()?.trim() {
        "quota_exhausted" | "insufficient_g1_credits_balance" => Some(Cause::Quota),
        "rate_limit_exceeded" => {
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            let is_quota = message.contains("exhausted your capacity on this model")
                || named_wait(text).is_some_and(|wait| wait >= LONG_RATE_LIMIT);
            Some(if is_quota { Cause::Quota } else { Cause::Rate })
        }
        _ => None,
    })
}

/// Returns true for a limit of tokens per minute that Alibaba words like a used-up quota.
fn is_token_throttle(text: &str) -> bool {
    let links = text
        .split_once("error-code")
        .is_some_and(|(_, rest)| rest.contains("#token-limit"));
    links && text.contains("you exceeded your current quota, please check your plan and billing details")
}

fn is_chinese_quota(text: &str) -> bool {
    let phrases = [
        "使用*上限",
        "额度用完",
        "额度已用完",
        "额度已用尽",
        "额度已耗尽",
        "配额用完",
        "配额已用完",
        "配额已用尽",
        "配额已耗尽",
        "限额*重置",
        "余额不足",
    ];
    any(text, &phrases) && !any(text, &PASSING)
}

fn is_concurrency(text: &str) -> bool {
    // Names such as `concurrent_requests_limit` are one word.
    let is_named = text.lines().any(|line| {
        places(line, "concurren*")
            .filter_map(|(from, to)| line.get(from..to))
            .any(|word| {
                ["limit", "quota", "exceed", "reach"]
                    .iter()
                    .any(|cap| word.contains(*cap))
            })
    });
    is_named || either(text, &CONCURRENT, &CAPPED, 60) || near(text, &["too many"], &CONCURRENT, 8)
}

fn lacks_credits(text: &str) -> bool {
    const CREDITS: [&str; 2] = ["credit", "credits"];
    near(text, &["exceed*", "insufficient", "not enough"], &CREDITS, 40)
        || near(text, &CREDITS, &["exhausted", "depleted"], 40)
}

/// Returns true if the limit is that of the account or its plan.
fn caps_account(text: &str) -> bool {
    const PLANS: [&str; 3] = ["subscription", "plan", "membership"];
    let passes = ["per second", "per minute"];
    either(text, &["account", "account's"], &RATE_LIMIT, 80)
        || either(text, &PLANS, &PLAN_LIMIT, 80) && !passes.iter().any(|time| text.contains(*time))
        || any(
            text,
            &[
                "spend?limit",
                "spending?limit",
                "spend?cap",
                "spending?cap",
                "free?models?per?day",
                "clinepass limit",
                "free limit reached on model",
                "usage credits are required",
                "credits_required",
            ],
        )
}

/// Returns true for a limit of the account in a refusal, or in an error without a status.
fn names_account_limit(text: &str) -> bool {
    const OWNERS: [&str; 5] = ["overall", "account", "organization", "team", "workspace"];
    near(text, &OWNERS, &RATE_LIMIT, 48) || near(text, &["your"], &["will reset"], 36)
}

/// Returns true if the text has no words beyond the status. Such a refusal counts as a used-up quota.
fn is_opaque(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text
        .split(|c: char| !is_letter(c))
        .filter(|word| !FRAME.contains(word));
    let says_more = words.flat_map(|word| word.split('_')).any(|part| part.len() >= 3);
    !says_more && !any(text, &PASSING) && !any(text, &THROTTLED)
}

/// Places of a word in a line: where it begins and ends. A `*` at its end stands for further letters.
fn places<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let stem = word.trim_end_matches('*');
    line.match_indices(stem).filter_map(move |(from, _)| {
        let before = line.get(..from)?.chars().next_back();
        let rest = line.get(from + stem.len()..)?;
        let more = rest.find(|c: char| !is_letter(c)).unwrap_or(rest.len());
        let is_word = !before.is_some_and(is_letter) && (more == 0 || stem.len() < word.len());
        is_word.then_some((from, from + stem.len() + more))
    })
}

/// Returns true if a line has one of the first words and, at most `gap` bytes behind it, one of the second.
fn near(text: &str, first: &[&str], second: &[&str], gap: usize) -> bool {
    text.lines().any(|line| {
        let mut ends = first.iter().flat_map(|word| places(line, word));
        ends.any(|(_, end)| {
            let mut begins = second.iter().flat_map(|word| places(line, word));
            begins.any(|(begin, _)| begin >= end && begin - end <= gap)
        })
    })
}

/// As [`near`], in any order.
fn either(text: &str, some: &[&str], others: &[&str], gap: usize) -> bool {
    near(text, some, others, gap) || near(text, others, some, gap)
}

/// The longest wait that the text names, such as `Please retry in 34.5s` or `quota will reset after 18h31m10s`.
fn named_wait(text: &str) -> Option<Duration> {
    let before = [
        "please retry in",
        "\"retrydelay\":",
        "try again in",
        "reset in",
        "resets in",
        "reset after",
    ];
    let named = before.iter().flat_map(|before| text.match_indices(*before));
    named
        .filter_map(|(at, before)| duration(text.get(at + before.len()..)?))
        .max()
}

/// The duration at the beginning of the text.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start_matches([' ', '~', '"']);
    let mut total: Option<Duration> = None;
    loop {
        let Some(digits) = rest.find(|c: char| !c.is_ascii_digit() && c != '.') else {
            return total;
        };
        let (number, after) = rest.split_at_checked(digits)?;
        let after = after.trim_start_matches(' ');
        let letters = after
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let seconds = match unit {
            "ms" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return total,
        };
        let Ok(number) = number.parse::<f64>() else {
            return total;
        };
        let part = Duration::try_from_secs_f64(number * seconds).ok()?;
        total = Some(total.unwrap_or_default().saturating_add(part));
        rest = after.trim_start_matches(' ');
    }
}
