//! Callers from a Kubernetes cluster. Everything is real but the cluster's API server, which is the
//! double of `test_support`.

mod deletion;
mod flood;
mod parked;
mod reviewed;
mod rotation;
mod settings;
mod trouble;
