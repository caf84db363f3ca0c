//! The check of a credential before a process serves: each reason to refuse it.

use database::{DatabaseUrl, RoleError};
use site_coordination::{API_ROLE, KEEPER_ROLE, PRODUCER_ROLE};

use crate::support::Fixture;

/// Why `API_ROLE` refuses the credential; nothing where it takes it.
async fn refusals(url: &DatabaseUrl) -> Vec<String> {
    match API_ROLE.check(url).await {
        Ok(()) => Vec::new(),
        Err(RoleError::TooMuch { role, reasons }) => {
            assert_eq!(role, url.role());
            reasons
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// The reasons against a login that is a member of the API's role after `change` was run; in it `%`
/// stands for the login's name.
async fn refusals_after(change: &str) -> Vec<String> {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    // Roles are of the whole cluster, so each has the name of its database.
    let name = fixture.database.name();
    let database = format!("GRANT CONNECT ON DATABASE {name} TO {name}");
    sql.batch_execute(&format!(
        "CREATE ROLE {name} LOGIN PASSWORD 'aA1' IN ROLE site_coordination_api; {database}"
    ))
    .await
    .unwrap();
    let api = fixture.database.url(API_ROLE.name);
    let (_, address) = api.split_once('@').unwrap();
    let url: DatabaseUrl = format!("postgresql://{name}:aA1@{address}").parse().unwrap();
    assert_eq!(refusals(&url).await, Vec::<String>::new());

    sql.batch_execute(&change.replace('%', name)).await.unwrap();
    let reasons = refusals(&url).await;
    let groups = sql
        .query("SELECT rolname::text FROM pg_roles WHERE starts_with(rolname, $1)", &[&name])
        .await
        .unwrap();
    for role in groups.iter().map(|row| row.get::<_, String>(0)) {
        sql.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
    }
    reasons.into_iter().map(|reason| reason.replace(name, "%")).collect()
}

#[tokio::test]
async fn a_right_to_delete_truncate_or_attach_in_its_own_schema_is_refused() {
    let reasons = refusals_after(
        "GRANT DELETE ON site_coordination.command_result TO %;
         GRANT TRUNCATE, REFERENCES, TRIGGER ON site_coordination.command TO %",
    )
    .await;
    let expected = [
        "delete in site_coordination.command_result",
        "truncate in site_coordination.command",
        "references in site_coordination.command",
        "trigger in site_coordination.command",
    ];
    for right in expected {
        let reason = format!("it may {right}");
        assert!(reasons.contains(&reason), "{reason}: {reasons:?}");
    }
    assert_eq!(reasons.len(), 4, "{reasons:?}");
}

#[tokio::test]
async fn the_owner_is_refused() {
    let fixture = Fixture::create().await;
    let reasons = refusals(&fixture.url("site_coordination_owner")).await;
    for expected in [
        "it is neither site_coordination_api nor a member of it",
        "it may create in the database",
        "it may create in the schema site_coordination",
    ] {
        assert!(reasons.iter().any(|reason| reason == expected), "{reasons:?}");
    }
    assert!(reasons.iter().any(|reason| reason.starts_with("it owns ")), "{reasons:?}");
}

#[tokio::test]
async fn a_superuser_is_refused() {
    let fixture = Fixture::create().await;
    let url = fixture.database.superuser_url().parse().unwrap();
    let reasons = refusals(&url).await;
    assert!(reasons.iter().any(|reason| reason == "it is a superuser"), "{reasons:?}");
}

#[tokio::test]
async fn the_role_of_the_other_side_is_refused() {
    let fixture = Fixture::create().await;
    let reasons = refusals(&fixture.url(PRODUCER_ROLE.name)).await;
    assert_eq!(reasons, ["it is neither site_coordination_api nor a member of it"]);
    let refusal = PRODUCER_ROLE.check(&fixture.url(API_ROLE.name)).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the role site_coordination_api must not serve: \
         it is neither site_coordination_producer nor a member of it"
    );
}

#[tokio::test]
async fn the_keeper_deletes_and_nobody_else_is_taken_for_it() {
    let fixture = Fixture::create().await;
    let keeper = fixture.url(KEEPER_ROLE.name);
    KEEPER_ROLE.check(&keeper).await.unwrap();
    let reasons = refusals(&keeper).await;
    assert!(reasons.contains(&"it is neither site_coordination_api nor a member of it".to_owned()));
    let deletes = reasons.iter().filter(|reason| reason.starts_with("it may delete in "));
    assert_eq!(deletes.count(), 8, "{reasons:?}");

    // To delete is all that it may do beyond the others.
    let sql = fixture.sql().await;
    sql.batch_execute(
        "GRANT TRUNCATE, TRIGGER ON site_coordination.command TO site_coordination_keeper",
    )
    .await
    .unwrap();
    let refusal = KEEPER_ROLE.check(&keeper).await.unwrap_err().to_string();
    assert_eq!(
        refusal,
        "the role site_coordination_keeper must not serve: \
         it may truncate in site_coordination.command; it may trigger in site_coordination.command"
    );
}

#[tokio::test]
async fn a_member_of_another_role_is_refused() {
    let reasons = refusals_after("GRANT site_coordination_producer TO %").await;
    assert_eq!(reasons, ["it is a member of site_coordination_producer"]);
}

#[tokio::test]
async fn a_member_of_a_member_of_another_role_is_refused() {
    let change = "CREATE ROLE %_group IN ROLE pg_read_all_data; GRANT %_group TO %";
    let reasons = refusals_after(change).await;
    for expected in ["it is a member of %_group", "it is a member of pg_read_all_data"] {
        assert!(reasons.iter().any(|reason| reason == expected), "{reasons:?}");
    }
}

#[tokio::test]
async fn a_role_that_may_become_a_superuser_is_refused() {
    let change = "CREATE ROLE %_group SUPERUSER; GRANT %_group TO %; ALTER ROLE % NOINHERIT";
    let reasons = refusals_after(change).await;
    let expected = "its role %_group is a superuser";
    assert!(reasons.iter().any(|reason| reason == expected), "{reasons:?}");
}

#[tokio::test]
async fn a_role_that_may_create_roles_is_refused() {
    assert_eq!(refusals_after("ALTER ROLE % CREATEROLE").await, ["it may create roles"]);
}

#[tokio::test]
async fn a_role_that_may_create_databases_is_refused() {
    assert_eq!(refusals_after("ALTER ROLE % CREATEDB").await, ["it may create databases"]);
}

#[tokio::test]
async fn a_role_that_may_replicate_is_refused() {
    assert_eq!(refusals_after("ALTER ROLE % REPLICATION").await, ["it may replicate"]);
}

#[tokio::test]
async fn a_role_that_passes_row_security_is_refused() {
    assert_eq!(refusals_after("ALTER ROLE % BYPASSRLS").await, ["it passes row security"]);
}

#[tokio::test]
async fn an_owner_of_anything_is_refused() {
    let change = "CREATE SCHEMA extra; CREATE SEQUENCE site_coordination.extra;
                  ALTER SEQUENCE site_coordination.extra OWNER TO %";
    assert_eq!(refusals_after(change).await, ["it owns 1 objects"]);
}

#[tokio::test]
async fn a_role_that_may_create_in_the_database_is_refused() {
    // The login and the database have the same name.
    let reasons = refusals_after("GRANT CREATE ON DATABASE % TO %").await;
    assert_eq!(reasons, ["it may create in the database"]);
}

#[tokio::test]
async fn a_role_that_may_create_in_a_schema_is_refused() {
    for schema in ["public", "site_coordination"] {
        let reasons = refusals_after(&format!("GRANT CREATE ON SCHEMA {schema} TO %")).await;
        assert_eq!(reasons, [format!("it may create in the schema {schema}")]);
    }
}

#[tokio::test]
async fn a_role_with_rights_in_another_schema_is_refused() {
    let schema = "CREATE SCHEMA extra; GRANT USAGE ON SCHEMA extra TO %;";
    for change in [
        "CREATE TABLE extra.secret (a int, b int); GRANT SELECT (b) ON extra.secret TO %",
        "CREATE TABLE extra.secret (a int); GRANT DELETE ON extra.secret TO PUBLIC",
        "CREATE VIEW extra.secret AS SELECT 1; GRANT SELECT ON extra.secret TO site_coordination_api",
        "CREATE SEQUENCE extra.secret; GRANT USAGE ON SEQUENCE extra.secret TO %",
    ] {
        let reasons = refusals_after(&format!("{schema}{change}")).await;
        let expected = "it may read or write extra.secret";
        assert!(reasons.iter().any(|reason| reason == expected), "{change}: {reasons:?}");
    }
}

#[tokio::test]
async fn a_role_whose_commits_do_not_wait_for_the_disk_is_refused() {
    assert_eq!(
        refusals_after("ALTER ROLE % SET synchronous_commit = off").await,
        ["its commits do not wait for the disk: synchronous_commit is off"]
    );
}
