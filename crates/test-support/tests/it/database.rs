//! One database a test: cloned, closed to everybody but its roles, and gone.

use test_support::{TestDatabase, postgres::Access};

async fn count(sql: &str) -> i64 {
    let client = Access::of_this_test().superuser("postgres").await.unwrap();
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_database_has_the_schemas_of_the_template_and_is_dropped_in_the_end() {
    let database = TestDatabase::create().await;
    let here = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", database.name());
    assert_eq!(count(&here).await, 1);
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'site_coordination'";
    let client = database.superuser().await;
    assert_eq!(client.query_one(schemas, &[]).await.unwrap().get::<_, i64>(0), 1);
    // The open connection does not keep it.
    drop(database);
    assert_eq!(count(&here).await, 0);
}

#[tokio::test]
async fn only_its_roles_may_connect() {
    let database = TestDatabase::create().await;
    let client = database.superuser().await;
    let may = "SELECT rolname::text FROM pg_roles \
               WHERE NOT rolsuper AND rolname !~ '^pg_' AND has_database_privilege(rolname, current_database(), $1) \
               ORDER BY 1";
    let roles = async |right: &str| -> Vec<String> {
        client.query(may, &[&right]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    let all: Vec<_> = Access::of_this_test().role_passwords.into_keys().collect();
    assert_eq!(roles("CONNECT").await, all);
    let owners: Vec<_> = all.into_iter().filter(|role| role.ends_with("_owner")).collect();
    assert_eq!(roles("CREATE").await, owners);
    assert_eq!(roles("TEMPORARY").await, Vec::<String>::new());
}

#[tokio::test]
async fn many_databases_are_made_at_once() {
    let made = (0..8).map(|_| tokio::spawn(TestDatabase::create()));
    let mut names = std::collections::BTreeSet::new();
    for database in made.collect::<Vec<_>>() {
        names.insert(database.await.unwrap().name().to_owned());
    }
    assert_eq!(names.len(), 8);
}
