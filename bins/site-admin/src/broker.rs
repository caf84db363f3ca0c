//! `site-admin broker`: what the administrator of a RabbitMQ broker imports once.

mod definitions;

use clap::Subcommand;
use ring::rand::SecureRandom;

use crate::{Failure, output::Format};

#[derive(Subcommand)]
pub(crate) enum Broker {
    /// Print the exchange, the queue, the users and the permissions for asking Beto, as definitions
    /// of RabbitMQ.
    ///
    /// For `rabbitmqctl import_definitions`, or the setting `load_definitions`. Users are there with
    /// hashes; each password is in the file of its URL. Run again it makes the files that are
    /// missing, and prints the same users with the passwords of those that are there.
    Definitions(definitions::Definitions),
}

pub(crate) fn run(
    command: Broker,
    format: Format,
    random: &dyn SecureRandom,
) -> Result<(), Failure> {
    match command {
        Broker::Definitions(arguments) => definitions::run(&arguments, format, random),
    }
}
