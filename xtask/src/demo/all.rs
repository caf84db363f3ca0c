//! `cargo xtask demo --all`, what the plain demo leaves out: a Run that is accepted, admitted and
//! authorised, and its private output, read by its member and refused to another. It needs RabbitMQ and
//! Node, which are installed where they are missing.

use std::error::Error;

use bytes::Bytes;
use test_support::{
    postgres::{Cluster, Installation, Options},
    rabbitmq,
};

use crate::{
    stop::Stop,
    surroundings::{
        AUDIENCE, Surroundings,
        calls::{Api, code, execute, execution},
        rule,
    },
};

const RUN: &str = "run-1";
const MEMBER: &str = "ada";
const STRANGER: &str = "eve";
const OUTPUT: &[u8] = b"loss 0.021 after 40 epochs\n";

/// Plays it around a cluster of its own, which ends with it.
pub(super) async fn play(stop: &Stop, installation: &Installation) -> Result<(), Box<dyn Error>> {
    println!("\n== A Run with authority: RabbitMQ with Beto's callers, a login issuer, a cluster");
    // Not interrupted: a package is installed whole.
    rabbitmq::Search::of_this_process().find_or_install(|what| println!("{what}"))?;
    let folder = tempfile::Builder::new().prefix("site-control-demo-all-").tempdir()?;
    let cluster = stop.unless(Cluster::start(installation, Options::default())).await??;
    let mut all = stop.unless(Surroundings::set_up(folder.path(), cluster)).await??;
    let played = match stop.unless(tell(&mut all)).await {
        Ok(played) => played,
        Err(stopped) => Err(stopped.into()),
    };
    if played.is_err() {
        println!("\nsite-api:\n{}\nresponder:\n{}", all.site_api.tail(), all.responder.tail());
    }
    all.outside.cluster.stop().await?;
    played
}

async fn tell(all: &mut Surroundings) -> Result<(), Box<dyn Error>> {
    let (api, runtime) = (Api::of(&all.site)?, all.site.bearer()?);
    let (path, output) = (execution(RUN), format!("{}/output", execution(RUN)));

    println!(
        "== `site-admin runs accept`, `runs submit` and `bindings retain`, for the member {MEMBER}"
    );
    all.accept(RUN, MEMBER)?;
    all.retain(MEMBER, 2001)?;
    let read = api.get(&path, &all.admission_token()).await?;
    is("the admission, an account of the cluster, reads the Run", &code(&read), "200 OK")?;
    let asked = api.authorise(&runtime, RUN, 1, "execute").await?;
    is(
        "its Runtime asks whether it may execute: Beto says no",
        &code(&asked),
        "permission_denied",
    )?;
    all.allow(&[rule("runs.execute", MEMBER), rule("runs.output.view", MEMBER)])?;
    let asked = api.authorise(&runtime, RUN, 1, "execute").await?;
    is("Beto is told to allow it, and it is asked again", &code(&asked), "200 OK")?;

    execute(all, &api, RUN, &Bytes::from_static(OUTPUT)).await?;
    println!("== a command of the Run was executed and left a private output");
    let (ours, strangers) = (
        all.member_tokens(MEMBER, AUDIENCE).await.access_token,
        all.member_tokens(STRANGER, AUDIENCE).await.access_token,
    );
    let read = api.get(&output, &ours).await?;
    let is_it = read.body.as_ref() == OUTPUT;
    is("its member reads it", &code(&read), "200 OK")?;
    is("and it is what was written", &is_it.to_string(), "true")?;
    let refused = api.get(&output, &strangers).await?;
    is("another member is told that there is none", &code(&refused), "not_found")?;
    all.allow(&[])?;
    let refused = api.get(&output, &ours).await?;
    is("the permission is taken away: the next request is refused", &code(&refused), "not_found")?;
    Ok(())
}

/// Tells what came, and that it was what had to come.
fn is(what: &str, told: &str, expected: &str) -> Result<(), String> {
    println!("   {what:<62} {told}");
    if told == expected { Ok(()) } else { Err(format!("{what}: {told}, and not {expected}")) }
}
