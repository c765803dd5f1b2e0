//! How much one client may ask: a token bucket each. Addresses are held in memory only, shortened to
//! what one household or office has: IPv6 to its /64.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State as Shared};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use florilegium_batch::LiveServer;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::State;
use crate::reply::too_many;

/// Clients after which those that rest are forgotten.
const REMEMBERED: usize = 10_000;

/// Who asks, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Client(IpAddr);

impl Client {
    /// An address, IPv6 shortened to its /64.
    pub fn of(address: IpAddr) -> Self {
        Client(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }

    /// The client of a request: the last address in the header that a trusted proxy sets, where one is
    /// configured, else the other end of the connection.
    pub fn of_request(
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        settings: &LiveServer,
    ) -> Option<Self> {
        let named = settings.client_header.as_ref().and_then(|name| {
            let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
            value.rsplit(',').next()?.trim().parse::<IpAddr>().ok()
        });
        named.or(peer.map(|peer| peer.ip())).map(Client::of)
    }
}

/// The buckets.
pub(crate) struct Limits {
    buckets: DefaultKeyedRateLimiter<Client>,
}

impl Limits {
    pub fn new(settings: &LiveServer) -> Self {
        let one = NonZeroU32::MIN;
        let rate = NonZeroU32::new(settings.requests_per_second).unwrap_or(one);
        let burst = NonZeroU32::new(settings.burst).unwrap_or(one);
        Limits { buckets: RateLimiter::keyed(Quota::per_second(rate).allow_burst(burst)) }
    }

    /// Takes one from a client's bucket, if there is one.
    pub fn take(&self, client: Client) -> bool {
        if self.buckets.len() > REMEMBERED {
            self.buckets.retain_recent();
        }
        self.buckets.check_key(&client).is_ok()
    }
}

/// Turns away a client whose bucket is empty.
pub(crate) async fn limit(
    Shared(state): Shared<Arc<State>>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0);
    let client = Client::of_request(request.headers(), peer, &state.settings);
    match client {
        Some(client) if !state.limits.take(client) => too_many(),
        _ => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(header: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", header.parse().unwrap());
        headers
    }

    #[test]
    fn a_header_counts_only_where_a_proxy_is_trusted_and_then_its_own_entry() {
        let peer = Some("192.0.2.1:5".parse().unwrap());
        let spoofed = request("203.0.113.9, 198.51.100.7");
        let none = LiveServer::default();
        let behind = LiveServer { client_header: Some("x-forwarded-for".into()), ..none.clone() };
        let of = |settings| Client::of_request(&spoofed, peer, settings).unwrap();
        assert_eq!(of(&none), Client::of("192.0.2.1".parse().unwrap()));
        assert_eq!(of(&behind), Client::of("198.51.100.7".parse().unwrap()));
        let garbled = Client::of_request(&request("unknown"), peer, &behind).unwrap();
        assert_eq!(garbled, Client::of("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn a_network_is_one_client_and_an_empty_bucket_refuses() {
        let of = |text: &str| Client::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::5"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::5"), of("2001:db8:1:3::5"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        let settings = LiveServer { burst: 3, requests_per_second: 1, ..LiveServer::default() };
        let limits = Limits::new(&settings);
        let client = of("192.0.2.1");
        assert!((0..3).all(|_| limits.take(client)));
        assert!(!limits.take(client));
        assert!(limits.take(of("192.0.2.2")), "others are served");
    }
}
