//! What the server counts, in the text format of Prometheus. Nothing in it tells who asked what.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// The counters.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Route, Histogram>,
    jobs: Family<Outcome, Counter>,
    /// Jobs that wait.
    pub queue: Gauge,
    /// Full syntheses that failed, so that a degraded one was made.
    pub full_failed: Counter<u64, AtomicU64>,
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("florilegium");
        let requests = Family::default();
        let buckets = || Histogram::new([0.001, 0.005, 0.02, 0.05, 0.15, 0.5, 2.0, 10.0]);
        let seconds = Family::<Route, Histogram>::new_with_constructor(buckets);
        let jobs = Family::default();
        let queue = Gauge::default();
        let full_failed = Counter::default();
        registry.register("requests", "Requests answered", requests.clone());
        registry.register("request_seconds", "Seconds to the head of an answer", seconds.clone());
        registry.register("jobs", "Syntheses that ended", jobs.clone());
        registry.register("queue", "Questions that wait for a synthesis", queue.clone());
        let help = "Full syntheses that failed and were followed by a degraded one";
        registry.register("full_failed", help, full_failed.clone());
        Metrics { registry, requests, seconds, jobs, queue, full_failed }
    }

    /// Counts a request.
    pub fn request(&self, path: &str, status: u16, seconds: f64) {
        let route = route(path);
        self.requests.get_or_create(&Request { route, status }).inc();
        self.seconds.get_or_create(&Route { route }).observe(seconds);
    }

    /// Counts a job that ended.
    pub fn job(&self, outcome: &'static str) {
        self.jobs.get_or_create(&Outcome { outcome }).inc();
    }

    /// The whole as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }
}

/// A few names for all addresses there are: a label a visitor can choose would grow without bound.
fn route(path: &str) -> &'static str {
    match path {
        "/ask" => "ask",
        "/api/ask" => "api_ask",
        "/api/search" => "api_search",
        "/healthz" | "/readyz" => "health",
        path if path.starts_with("/api/jobs/") => "api_jobs",
        path if path.starts_with("/api/") => "api_other",
        _ => "site",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_grow_with_what_visitors_type() {
        let metrics = Metrics::new();
        for n in 0..100 {
            metrics.request(&format!("/{n}"), 404, 0.001);
            metrics.request(&format!("/api/jobs/{n}"), 404, 0.001);
        }
        metrics.job("answered");
        let text = metrics.text();
        assert!(
            text.contains("florilegium_requests_total{route=\"site\",status=\"404\"} 100"),
            "{text}"
        );
        assert!(text.contains("florilegium_jobs_total{outcome=\"answered\"} 1"), "{text}");
        assert!(text.lines().count() < 60);
    }
}
