#![doc = include_str!("../README.md")]

pub mod catalogue;
pub mod openssh;
pub mod postgres;
pub mod process;
pub mod rabbitmq;

mod at_once;
mod debian;
mod faketime;
mod kube_api;
mod manifest;
mod oidc;
mod peer;
mod projected;
mod proxy;
mod random;
mod site;
mod systemd;
mod tls;
mod wait;

pub use at_once::at_once;
pub use faketime::Faketime;
pub use kube_api::{API_AUDIENCE, Fault, KubeApi, TokenRequest};
pub use manifest::{config_map, manifest};
pub use oidc::{AccessRequest, MemberTokens, OidcError, OidcProvider};
pub use openssh::ssh_keygen;
pub use peer::{Peer, Received, Reply};
pub use postgres::TestDatabase;
pub use process::{Process, bin, free_port};
pub use projected::Projected;
pub use proxy::{Proxy, ProxyCounts, ProxyHandle, ProxySetup};
pub use random::{Random, TEST_SEED};
pub use site::{DatabaseUrls, SiteError, TestSite};
pub use systemd::systemd_analyze;
pub use tls::{Issued, TestCa};
pub use wait::eventually;
