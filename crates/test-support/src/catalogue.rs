//! What the catalogue of a database says of the schema of a context: who may do what, and what it is
//! made of. The crates of contexts compare it with what they say of themselves.

use std::collections::BTreeSet;

use tokio_postgres::{Client, error::SqlState};

use crate::TestDatabase;

const RIGHTS: &str = include_str!("catalogue/rights.sql");
const SCHEMA: &str = include_str!("catalogue/schema.sql");
const LEFT: &str = include_str!("catalogue/left.sql");

/// Every right of everybody but the owner in a schema, in `public` and on the database, and of the
/// schema's roles also elsewhere. The roles of a schema are those whose name begins with its own.
///
/// # Panics
///
/// When the catalogue can't be read.
pub async fn rights(sql: &Client, schema: &str) -> BTreeSet<String> {
    let rows = sql.query(RIGHTS, &[&schema]).await.expect("a superuser reads the catalogue");
    rows.iter().map(|row| row.get(0)).collect()
}

/// What [`rights`] finds where each role has exactly these: privileges, separated by commas, and the
/// object, which has no schema in its name.
pub fn listed_rights(schema: &str, roles: &[(&str, &[(&str, &str)])]) -> BTreeSet<String> {
    let mut listed = BTreeSet::new();
    for (role, rights) in roles {
        for (privileges, object) in *rights {
            let object = if *object == "database" || object.starts_with("schema ") {
                (*object).to_owned()
            } else {
                format!("{schema}.{object}")
            };
            let rights = privileges.split(',').map(|right| format!("{role}: {right} {object}"));
            listed.extend(rights);
        }
    }
    listed
}

/// Compares [`rights`] with [`listed_rights`].
///
/// # Panics
///
/// When they differ.
pub async fn assert_rights(sql: &Client, schema: &str, roles: &[(&str, &[(&str, &str)])]) {
    let (found, listed) = (rights(sql, schema).await, listed_rights(schema, roles));
    let extra: Vec<_> = found.difference(&listed).collect();
    let missing: Vec<_> = listed.difference(&found).collect();
    assert!(extra.is_empty() && missing.is_empty(), "extra: {extra:#?}\nmissing: {missing:#?}");
    assert!(found.len() > 4, "{found:?}");
}

/// Tries each statement as `role`, as a session of its own would. `allowed` is one that it may run,
/// so that it is known to be in.
///
/// # Panics
///
/// When one is not refused for want of a right.
pub async fn assert_refused<'s>(
    database: &TestDatabase,
    role: &str,
    allowed: &str,
    statements: impl IntoIterator<Item = &'s str>,
) {
    let sql = database.superuser().await;
    let become_it = format!("SET SESSION AUTHORIZATION {role}");
    sql.batch_execute(&become_it).await.expect("the role is there");
    sql.batch_execute(allowed).await.expect("the role may do this");
    for statement in statements {
        match sql.batch_execute(statement).await {
            Ok(()) => panic!("{role} may: {statement}"),
            Err(error) => assert_eq!(
                error.code(),
                Some(&SqlState::INSUFFICIENT_PRIVILEGE),
                "{role}: {statement}: {error:?}"
            ),
        }
    }
}

/// Every column, constraint, index, function and right of a schema.
///
/// # Panics
///
/// When the catalogue can't be read.
pub async fn schema(sql: &Client, schema: &str) -> Vec<String> {
    let rows = sql.query(SCHEMA, &[&schema]).await.expect("a superuser reads the catalogue");
    rows.iter().map(|row| row.get(0)).collect()
}

/// What is left of a schema whose changes were all taken back: tables, functions, and who may do
/// anything with them. The record of migrations stays.
///
/// # Panics
///
/// When the catalogue can't be read.
pub async fn left_behind(sql: &Client, schema: &str) -> Vec<String> {
    let rows = sql.query(LEFT, &[&schema]).await.expect("a superuser reads the catalogue");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Makes the changes of a schema as its owner, one after the other, and takes them back, each by its own
/// way back. The record of migrations has to be there, and nothing else.
///
/// # Panics
///
/// When one leaves another schema than there was before it.
pub async fn assert_each_change_is_taken_back(
    sql: &Client,
    schema: &str,
    changes: &[(&str, &str)],
) {
    let become_it = format!("SET SESSION AUTHORIZATION {schema}_owner; SET search_path = {schema}");
    sql.batch_execute(&become_it).await.expect("the owner is there");
    let mut before = Vec::new();
    for (up, _) in changes {
        before.push(self::schema(sql, schema).await);
        sql.batch_execute(up).await.expect("a change");
    }
    for ((_, down), before) in changes.iter().zip(before).rev() {
        sql.batch_execute(down).await.expect("a way back");
        assert_eq!(self::schema(sql, schema).await, before, "after {down}");
    }
}
